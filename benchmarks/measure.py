"""Tables of timings, claims about their ratios, and ways to time on a machine that others use too."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from heapwatch.text import markdown


@dataclass
class Table:
    """Rows under a header such as `tool | seconds`; cells are text."""

    title: str
    header: str
    rows: list[list[str]] = field(default_factory=list)

    def measured(self, *row: str) -> None:
        """Add a row, and print it: the next one may take minutes."""
        self.rows.append([*row])
        print(json.dumps(row), flush=True)

    def markdown(self) -> str:
        """The table as Markdown, under its title."""
        return f"### {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """The table as Markdown, without its title."""
        return markdown.table(self.header.split(" | "), self.rows)


@dataclass
class Claim:
    """One sentence that the numbers bear out, or do not."""

    text: str
    measured: str
    holds: bool

    def line(self) -> str:
        """The claim, whether it holds, and what was measured."""
        return f"{'pass' if self.holds else 'FAIL'}: {self.text}: {self.measured}"


@dataclass
class Report:
    """What one benchmark found."""

    tables: list[Table]
    claims: list[Claim]


def report_of(name: str) -> Report:
    """Run a benchmark of `benchmarks.cost`."""
    report: Report = importlib.import_module(f"benchmarks.cost.{name}").run()
    return report


def at_least(text: str, ratio: float, wanted: float) -> Claim:
    return Claim(f"{text}, at least {wanted:g} times", f"{ratio:,.1f} times", ratio >= wanted)


def at_most(text: str, value: float, allowed: float, unit: str = " %") -> Claim:
    return Claim(f"{text}, at most {allowed:g}{unit}", f"{value:.3g}{unit}", value <= allowed)


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int, number: int = 1
) -> dict[str, float]:
    """Seconds a call, the least of `rounds` in which the functions take turns.

    The least is what the code costs while nobody else uses the machine; turns spread what others do.
    """
    least = dict.fromkeys(functions, float("inf"))
    gc.collect()
    for _ in range(rounds):
        for name, function in functions.items():
            began = time.perf_counter()
            for _ in range(number):
                function()
            least[name] = min(least[name], (time.perf_counter() - began) / number)
    return least


def with_version(distribution: str, otherwise: str) -> str:
    """A distribution's name with the version that is installed, or another text where none is."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return otherwise


def nanoseconds(seconds: float) -> str:
    return f"{seconds * 1e9:,.0f}"


def machine() -> str:
    """What a page says of the machine that its figures come from."""
    memory = psutil.virtual_memory().total / 2**30
    system = f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}"
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB of memory, {system}"


def write_part(document: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a page.

    Raises:
        ValueError: the page lacks one of the marks.

    """
    before, begins, rest = document.read_text(encoding="utf-8").partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends):
        raise ValueError(f"{document} has no {begin} and {end}")
    document.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
