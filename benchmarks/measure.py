"""Tables of timings, claims about their ratios, and ways to time on a machine that others use too."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil


@dataclass
class Table:
    """Rows under a header such as `tool | seconds`; cells are text."""

    title: str
    header: str
    rows: list[list[str]] = field(default_factory=list)

    def markdown(self) -> str:
        """The table as Markdown, under its title."""
        return f"### {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """The table as Markdown, without its title."""
        rule = " | ".join("---" for _ in self.header.split(" | "))
        return "\n".join(f"| {line} |" for line in (self.header, rule, *map(" | ".join, self.rows)))


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
    """What one benchmark found, and which peers it had to do without."""

    tables: list[Table]
    claims: list[Claim]
    missing: list[str] = field(default_factory=list)


def report_of(name: str) -> Report:
    """Run a benchmark of `benchmarks.cost`."""
    report: Report = importlib.import_module(f"benchmarks.cost.{name}").run()
    return report


def at_least(text: str, ratio: float, wanted: float) -> Claim:
    return Claim(f"{text}, at least {wanted:g} times", f"{ratio:,.1f} times", ratio >= wanted)


def at_most(text: str, value: float, allowed: float, unit: str = " %") -> Claim:
    return Claim(f"{text}, at most {allowed:g}{unit}", f"{value:.3g}{unit}", value <= allowed)


class Peers:
    """Imports the tools that the project is compared with; keeps the reasons of those that are not there."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def load(self, module: str) -> Any:
        """The module, or None where it is not installed."""
        try:
            return importlib.import_module(module)
        except ImportError as error:
            self.missing.append(f"{module} ({error})")
            return None


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int, number: int = 1, *, collect: bool = True
) -> dict[str, float]:
    """Seconds a call, the least of `rounds` in which the functions take turns.

    The least is what the code costs while nobody else uses the machine; turns spread what others do.
    """
    least = dict.fromkeys(functions, float("inf"))
    if collect:
        gc.collect()
    for _ in range(rounds):
        for name, function in functions.items():
            began = time.perf_counter()
            for _ in range(number):
                function()
            least[name] = min(least[name], (time.perf_counter() - began) / number)
    return least


def once(function: Callable[[], object]) -> tuple[float, Any]:
    """Seconds of one call, and its result."""
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def with_version(distribution: str, otherwise: str) -> str:
    """A distribution's name with the version that is installed, or another text where none is."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return otherwise


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


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
