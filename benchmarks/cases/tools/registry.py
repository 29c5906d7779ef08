"""All tools by name: how each runs a script and what it reports of it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.cases.score import Report, ToolFinding
from benchmarks.cases.tools import heapwatch_run, in_process
from benchmarks.cases.tools.growth import BYTES_PER_MINUTE
from benchmarks.cases.tools.in_process import IN_PROCESS
from benchmarks.running import Outcome, run, with_root

OURS = heapwatch_run.TITLE
MEMRAY = "memray"


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
    outcome = run(command, folder, seconds, environment=with_root(environment), poll=watcher.poll)
    if outcome.status != 0:
        return _failed(OURS, outcome)
    found = heapwatch_run.findings(heapwatch_run.last_document(outcome.stdout))
    return Report(found, watcher.seconds or outcome.seconds)


def memray(script: Path, folder: Path, seconds: float, *arguments: str) -> Report:
    """What memray says of a script that is interrupted after `seconds`: lines of it that hold memory."""
    capture = folder / "capture.bin"
    options = ["--force", "--quiet", "--trace-python-allocators", "--output", str(capture)]
    command = [sys.executable, "-m", "memray", "run", *options, str(script), *arguments]
    outcome = run(command, folder, seconds, interrupt=True)
    if outcome.status is None or not capture.exists():
        return _failed(MEMRAY, outcome)
    found = _held(capture, script, seconds)
    capture.unlink()
    return Report(found, outcome.seconds)


def _held(capture: Path, script: Path, seconds: float) -> tuple[ToolFinding, ...]:
    """The lines of the script that hold enough at the end of a capture, most first."""
    import memray

    held: Counter[int] = Counter()
    with memray.FileReader(capture) as reader:
        for record in reader.get_leaked_allocation_records(merge_threads=True):
            line = own_line(record.stack_trace(), str(script))
            if line is not None:
                held[line] += record.size
    least = BYTES_PER_MINUTE * seconds / 60
    return tuple(
        ToolFinding(sites=((str(script), line),)) for line, size in held.most_common() if size >= least
    )


def own_line(stack: list[tuple[str, str, int]], script: str) -> int | None:
    """The innermost line of the script in a stack of function, file and line, innermost first."""
    return next((line for _, file, line in stack if file == script), None)


def _in_process(title: str, script: Path, folder: Path, seconds: float) -> Report:
    out = folder / "told.json"
    program = [sys.executable, "-m", in_process.__name__, title, f"{seconds:g}", str(out), str(script)]
    outcome = run(program, folder, seconds, environment=with_root({}))
    if outcome.status != 0 or not out.exists():
        return _failed(title, outcome)
    return Report(in_process.findings(json.loads(out.read_text())), outcome.seconds)


def _failed(tool: str, outcome: Outcome) -> Report:
    ended = "did not end" if outcome.status is None else f"ended with {outcome.status}"
    return Report(failure=f"{tool} {ended}: {outcome.last_words}")


TOOLS: dict[str, Callable[[Path, Path, float], Report]] = {
    OURS: _ours,
    MEMRAY: memray,
    **{title: partial(_in_process, title) for title in IN_PROCESS},
}
RULES = {
    OURS: heapwatch_run.RULE,
    MEMRAY: "`memray run --trace-python-allocators`, ended with Ctrl-C, then the report of leaks; memory is "
    "charged to the innermost line of the trainer's own script. It tells one moment only, so a finding is a "
    "line of the script that holds 1 MB for each minute of the run",
    **{title: tool.rule for title, tool in IN_PROCESS.items()},
}
