"""The three plugins: the test that a person would write with each, and what its failure says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.cases.score import ToolFinding
from benchmarks.cases.tools.in_process import site

ROUND_SECONDS = 2.0
ROUNDS = 24
_TEST = """from pathlib import Path

import pytest

from benchmarks.cases.plugins.driver import Script


@pytest.fixture
def script():
    running = Script(Path(__file__).with_name("train.py"))
    running.advance({seconds})
    return running


{test}"""


@dataclass(frozen=True)
class Plugin:
    """A pytest plugin.

    Args:
        title: of the distribution that it is installed with.
        module: that pytest loads.
        test: the test with its marker or fixture.
        options: of the command line.
        complaint: what its failures say; a failure without it is not of the plugin.
        findings: reads pytest's output.
        rule: the settings, in words.

    """

    title: str
    module: str
    test: str
    options: tuple[str, ...]
    complaint: str
    findings: Callable[[str], tuple[ToolFinding, ...]]
    rule: str

    @property
    def text(self) -> str:
        """The test file; the script stands beside it as train.py."""
        return _TEST.format(seconds=ROUND_SECONDS, test=self.test)


_OURS = re.compile(r"^  (?P<name>.+) \((?P<about>[^()]+)\): .*? a round(?P<rest>.*)$", re.MULTILINE)
_FILLED = re.compile(r", filled at (?P<place>.+:\d+) in ")
# Where a finding is no path: what stands in its brackets, and the kind that the cases know it by.
_KINDS = {
    "instances": "type",
    "garbage": "type",
    "malloc": "native",
    "allocator": "allocator",
    "workers": "worker",
}


def ours(output: str) -> tuple[ToolFinding, ...]:
    """A path or a type in each line, with the line that fills it."""
    found = []
    for match in _OURS.finditer(output.partition("something grows")[2]):
        name, about = match["name"], match["about"]
        kind = _KINDS.get(about, "container")
        filled = _FILLED.search(match["rest"])
        found.append(
            ToolFinding(
                path=name if kind == "container" else None,
                type=name if kind == "type" else about,
                kind=kind,
                sites=(site(filled["place"]),) if filled else (),
            )
        )
    return tuple(found)


_GROWING = re.compile(r"^E? +(?P<type>[\w.<>]+) +\+[\d.]+ per call +\(window 1", re.MULTILINE)
_ALLOCATED = re.compile(r"^E? +(?P<place>\S+:\d+) +\+[\d.]+ KiB per call", re.MULTILINE)


def leak_hunter(output: str) -> tuple[ToolFinding, ...]:
    """The first type goes with the first place, the second with the second, and so on."""
    types = [match["type"] for match in _GROWING.finditer(output)]
    places = [site(match["place"]) for match in _ALLOCATED.finditer(output)]
    return tuple(
        ToolFinding(type=name, sites=tuple(places[index : index + 1])) for index, name in enumerate(types)
    )


_UNITS = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_LEAKED = re.compile(r"- (?P<size>[\d.]+)(?P<unit>[KMGT]?i?B) allocated here:\n(?P<stack>(?: {8}.*\n)+)")
_FRAME = re.compile(r":(?P<place>/[^:\n]*train\.py:\d+)$", re.MULTILINE)


def memray(output: str) -> tuple[ToolFinding, ...]:
    """The innermost line of the script in each stack, the stack that leaks most first."""
    stacks = sorted(
        _LEAKED.finditer(output), key=lambda match: -float(match["size"]) * _UNITS.get(match["unit"], 1.0)
    )
    found = []
    for match in stacks:
        frame = _FRAME.search(match["stack"])
        found.append(ToolFinding(sites=(site(frame["place"]),) if frame else ()))
    return tuple(found)


OURS = Plugin(
    title="heapwatch",
    module="heapwatch.testing.plugin",
    test=f"""@pytest.mark.no_leak
def test_training_keeps_nothing(script):
    script.advance({ROUND_SECONDS})
""",
    options=(),
    complaint="something grows with every one of",
    findings=ours,
    rule=f"`@pytest.mark.no_leak` as it is: {ROUNDS} rounds at most",
)
LEAK_HUNTER = Plugin(
    title="python-leak-hunter",
    module="leak_hunter.pytest_plugin",
    test=f"""def test_training_keeps_nothing(script, leak_check):
    leak_check(lambda: script.advance({ROUND_SECONDS}), trace_allocations=True)
""",
    options=(),
    complaint="Objects accumulating across calls",
    findings=leak_hunter,
    rule=(
        "`leak_check(work, trace_allocations=True)`: three calls of warm-up and two windows of 20; all types "
        "count, and allocations are traced so that it can name lines; the first type goes with the first "
        "line, the second with the second, and so on"
    ),
)
MEMRAY = Plugin(
    title="pytest-memray",
    module="pytest_memray.plugin",
    test=f"""@pytest.mark.limit_leaks("1 MB")
def test_training_keeps_nothing(script):
    for _ in range({ROUNDS}):
        script.advance({ROUND_SECONDS})
""",
    options=("--stacks=40",),
    complaint="Test was allowed to leak",
    findings=memray,
    rule=(
        '`@pytest.mark.limit_leaks("1 MB")`, the limit of its documentation, around a loop of '
        f"{ROUNDS} rounds, as it recommends, with `--stacks=40` so that a stack reaches the script; the line "
        "is the innermost one of the script in the stacks that leak most"
    ),
)
PLUGINS = {one.title: one for one in (OURS, LEAK_HUNTER, MEMRAY)}
