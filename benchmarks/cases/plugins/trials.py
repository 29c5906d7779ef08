"""One case under one plugin: pytest runs on the leak and on the twin, and its output becomes verdicts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.cases.case import Case
from benchmarks.cases.plugins.plugin import Plugin
from benchmarks.cases.score import TOP, has_right_line, is_named
from benchmarks.running import Outcome, run, with_root

LIMIT_SECONDS = 240.0
_COUNTED = re.compile(r"^(?:=+ )?(?P<counts>(?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a plugin said of one script.

    Args:
        said: that it leaks, that it does not, or nothing, because something broke.
        named: whether it named what grows, and `line`, where; as in the score, in its first three findings.
        line: see there.
        seconds: that pytest took.
        words: what it named first, or what broke.

    """

    said: Literal["fails", "passes", "error"]
    named: bool = False
    line: bool = False
    seconds: float = 0.0
    words: str = ""


@dataclass(frozen=True)
class Trial:
    """A plugin on one case."""

    leak: Verdict
    twin: Verdict


def try_out(case: Case, plugin: Plugin, folder: Path) -> Trial:
    leak, twin = (_run(case, plugin, folder / name, healthy=name == "twin") for name in ("leak", "twin"))
    return Trial(leak, twin)


def _run(case: Case, plugin: Plugin, folder: Path, *, healthy: bool) -> Verdict:
    case.write(folder, healthy=healthy)
    (folder / "test_train.py").write_text(plugin.text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # Each plugin alone, whatever is installed beside it.
    environment = with_root({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    program = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", plugin.module]
    outcome = run(
        [*program, "-p", "no:cacheprovider", *plugin.options, "test_train.py"],
        folder,
        LIMIT_SECONDS,
        grace=0,
        environment=environment,
    )
    return verdict(case, plugin, outcome)


def verdict(case: Case, plugin: Plugin, outcome: Outcome) -> Verdict:
    """Read what pytest said: a failure counts only if the plugin's own words are in it."""
    took = outcome.seconds
    if outcome.status is None:
        return Verdict("error", seconds=took, words=f"did not end within {LIMIT_SECONDS:.0f} s")
    counts = _COUNTED.findall(outcome.stdout)
    counted = re.sub(r",? ?\d+ warnings?", "", counts[-1]) if counts else ""
    if outcome.status == 0 and counted == "1 passed":
        return Verdict("passes", seconds=took)
    if outcome.status == 1 and counted == "1 failed" and plugin.complaint in outcome.stdout:
        first = plugin.findings(outcome.stdout)[:TOP]
        return Verdict(
            "fails",
            named=any(is_named(case, found) for found in first),
            line=any(has_right_line(case, found) for found in first),
            seconds=took,
            words=", ".join(_words(found.path, found.type, found.sites) for found in first),
        )
    return Verdict("error", seconds=took, words=_broken(outcome))


def _words(path: str | None, kind: str | None, sites: tuple[tuple[str, int], ...]) -> str:
    places = [f"{Path(file).name}:{line}" for file, line in sites]
    return " ".join(filter(None, [path or kind, *places])) or "nothing"


def _broken(outcome: Outcome) -> str:
    lines = [line for line in outcome.stdout.splitlines() if line.startswith(("E  ", "ERROR", "FAILED"))]
    said = lines[0].removeprefix("E").strip() if lines else outcome.last_words
    return f"pytest ended with {outcome.status}: {said}"[:200]


def keep(folder: Path, case: str, plugin: str, trial: Trial) -> None:
    """Store a trial; what an earlier run found with other plugins stays."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case}.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, plugin: asdict(trial)}, indent=1))


def load(folder: Path, cases: Iterable[str]) -> dict[str, dict[str, Trial]]:
    """The trials that there are of these cases, by name and plugin."""
    found = {}
    for case in cases:
        path = folder / f"{case}.json"
        if path.exists():
            found[case] = {
                plugin: Trial(Verdict(**trial["leak"]), Verdict(**trial["twin"]))
                for plugin, trial in json.loads(path.read_text()).items()
            }
    return found
