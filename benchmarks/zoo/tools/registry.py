"""All tools by name: how each runs a script and what it reports of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.zoo.running import Outcome, run
from benchmarks.zoo.score import Report
from benchmarks.zoo.tools import (
    heapwatch_run,
    leak_hunter_growth,
    memray_leaks,
    objgraph_growth,
    pympler_summary,
    tracemalloc_difference,
)

ROOT = Path(__file__).parents[3]
OURS = heapwatch_run.TITLE
_INSIDE = (tracemalloc_difference, objgraph_growth, pympler_summary, leak_hunter_growth)


def report(tool: str, script: Path, folder: Path, seconds: float) -> Report:
    """Run a script under a tool for `seconds`, with `folder` for all that the run leaves behind."""
    try:
        return TOOLS[tool](script, folder, seconds)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Report(failure=f"{tool}: {type(error).__name__}: {error}")


def _ours(script: Path, folder: Path, seconds: float) -> Report:
    targets = folder / "targets"
    watcher = heapwatch_run.Watcher(targets)
    environment = {"HEAPWATCH_TARGETS_DIR": str(targets), "HEAPWATCH_STATE": str(folder / "state")}
    command = heapwatch_run.command(script, seconds)
    outcome = run(command, folder, seconds, environment=with_root(environment), look=watcher.look)
    if outcome.status != 0:
        return _failed(OURS, outcome)
    found = heapwatch_run.findings(heapwatch_run.last_document(outcome.stdout))
    return Report(found, watcher.seconds or outcome.seconds)


def _memray(script: Path, folder: Path, seconds: float) -> Report:
    capture = folder / "capture.bin"
    outcome = run(memray_leaks.command(script, capture), folder, seconds, interrupt=True)
    if outcome.status is None or not capture.exists():
        return _failed(memray_leaks.TITLE, outcome)
    found = memray_leaks.findings(capture, script, seconds)
    capture.unlink()
    return Report(found, outcome.seconds)


def _inside(module: Any) -> Callable[[Path, Path, float], Report]:
    def run_inside(script: Path, folder: Path, seconds: float) -> Report:
        out = folder / "told.json"
        name = module.__name__.rpartition(".")[2]
        program = [sys.executable, "-m", "benchmarks.zoo.tools.inside", name, f"{seconds:g}"]
        outcome = run([*program, str(out), str(script)], folder, seconds, environment=with_root({}))
        if outcome.status != 0 or not out.exists():
            return _failed(module.TITLE, outcome)
        return Report(module.findings(json.loads(out.read_text())), outcome.seconds)

    return run_inside


def with_root(environment: Mapping[str, str]) -> dict[str, str]:
    """With this package importable, whatever the working directory."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return {**environment, "PYTHONPATH": path}


def _failed(tool: str, outcome: Outcome) -> Report:
    ended = "did not end" if outcome.status is None else f"ended with {outcome.status}"
    return Report(failure=f"{tool} {ended}: {outcome.last_words}")


TOOLS: dict[str, Callable[[Path, Path, float], Report]] = {
    OURS: _ours,
    memray_leaks.TITLE: _memray,
    **{module.TITLE: _inside(module) for module in _INSIDE},
}
RULES = {module.TITLE: module.RULE for module in (heapwatch_run, memray_leaks, *_INSIDE)}
