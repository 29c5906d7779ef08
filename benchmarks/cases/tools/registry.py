"""All tools by name: how each runs a script and what it reports of it."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cases.score import Report, ToolFinding
from benchmarks.cases.tools import traced
from benchmarks.cases.tools.traced import BYTES_PER_MINUTE
from benchmarks.running import Outcome, run, with_root

OURS = "heapwatch"
MEMRAY = "memray"
TRACEMALLOC = "tracemalloc"


def report(tool: str, script: Path, folder: Path, seconds: float) -> Report:
    """Run a script under a tool for `seconds`, with `folder` for all that the run leaves behind."""
    try:
        return TOOLS[tool](script, folder, seconds)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Report(failure=f"{tool}: {type(error).__name__}: {error}")


def _ours(script: Path, folder: Path, seconds: float) -> Report:
    targets = folder / "targets"
    watcher = Watcher(targets)
    environment = {"HEAPWATCH_TARGETS_DIR": str(targets), "HEAPWATCH_STATE": str(folder / "state")}
    outcome = run(
        command(script, seconds), folder, seconds, environment=with_root(environment), poll=watcher.poll
    )
    if outcome.status != 0:
        return _failed(OURS, outcome)
    found = findings(last_document(outcome.stdout))
    return Report(found, watcher.seconds or outcome.seconds)


def command(script: Path, seconds: float) -> list[str]:
    program = [sys.executable, "-m", "heapwatch.cli.main", "run"]
    return [*program, "--json", "--seconds", f"{seconds:g}", str(script)]


def last_document(text: str) -> dict[str, Any]:
    """The JSON object that ends a program's output; the program may have printed anything before it.

    Raises:
        ValueError: there is none.

    """
    decoder = json.JSONDecoder()
    position = len(text)
    while (position := text.rfind("{", 0, position)) >= 0:
        if position and text[position - 1] != "\n":
            continue
        try:
            document, end = decoder.raw_decode(text, position)
        except ValueError:
            continue
        if isinstance(document, dict) and "verdict" in document and not text[end:].strip():
            return document
    raise ValueError("no explanation at the end of the output")


def findings(document: dict[str, Any]) -> tuple[ToolFinding, ...]:
    """Findings of an explanation: what is a leak, and what fills towards an end."""
    return tuple(
        ToolFinding(
            path=found["path"],
            type=found["type"],
            kind=found["kind"],
            sites=((found["site"]["file"], found["site"]["line"]),) if found["site"] else (),
            share=found["share"],
            bounded=not found["is_leak"],
        )
        for found in document["findings"]
        if found["is_leak"] or _is_filling(document, found)
    )


def _is_filling(document: dict[str, Any], found: dict[str, Any]) -> bool:
    return (
        document["verdict"] in ("filling", "will not fit", "leak")
        and found["capacity_items"] is not None
        and (found["bytes_per_minute"] or 0) > 0
    )


class Watcher:
    """Asks the running trainer for its explanation, and remembers when it first called a leak."""

    def __init__(self, targets: Path) -> None:
        self.targets = targets
        self.seconds: float | None = None

    def poll(self, pid: int, seconds: float) -> None:
        """Ask once; a trainer that does not answer yet is asked again next time."""
        if self.seconds is None and any(findings(document) for document in self._answers()):
            self.seconds = seconds

    def _answers(self) -> list[dict[str, Any]]:
        answers = []
        for path in self.targets.glob("*.json"):
            try:
                address = json.loads(path.read_text())[0]["targets"][0]
                with urllib.request.urlopen(f"http://{address}/explain", timeout=2) as answer:
                    answers.append(json.load(answer))
            except (OSError, ValueError, LookupError):
                continue
        return answers


def _memray(script: Path, folder: Path, seconds: float) -> Report:
    """What memray says of a script that is interrupted after `seconds`: lines of it that hold memory."""
    capture = folder / "capture.bin"
    options = ["--force", "--quiet", "--trace-python-allocators", "--output", str(capture)]
    command = [sys.executable, "-m", "memray", "run", *options, str(script)]
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


def _tracemalloc(script: Path, folder: Path, seconds: float) -> Report:
    out = folder / "told.json"
    program = [sys.executable, "-m", traced.__name__, f"{seconds:g}", str(out), str(script)]
    outcome = run(program, folder, seconds, environment=with_root({}))
    if outcome.status != 0 or not out.exists():
        return _failed(TRACEMALLOC, outcome)
    found = tuple(ToolFinding(sites=((file, line),)) for file, line in json.loads(out.read_text()))
    return Report(found, outcome.seconds)


def _failed(tool: str, outcome: Outcome) -> Report:
    ended = "did not end" if outcome.status is None else f"ended with {outcome.status}"
    return Report(failure=f"{tool} {ended}: {outcome.last_words}")


TOOLS: dict[str, Callable[[Path, Path, float], Report]] = {
    OURS: _ours,
    MEMRAY: _memray,
    TRACEMALLOC: _tracemalloc,
}
RULES = {
    OURS: "`heapwatch run --json`; findings are those that it calls leaks, and bounded buffers that it says "
    "are filling. The time is that of the first answer of `/explain` that calls a leak",
    MEMRAY: "`memray run --trace-python-allocators`, ended with Ctrl-C, then the report of leaks; memory is "
    "charged to the innermost line of the trainer's own script. It tells one moment only, so a finding is a "
    "line of the script that holds 1 MB for each minute of the run",
    TRACEMALLOC: "snapshots with 16 frames; memory is charged to the innermost line of the trainer's own "
    "script, else to the innermost line",
}
