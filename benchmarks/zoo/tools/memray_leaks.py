"""memray: what was allocated while it watched and not freed when the script was interrupted."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from benchmarks.zoo.score import ToolFinding
from benchmarks.zoo.tools.growth import BYTES_PER_MINUTE

TITLE = "memray"
RULE = (
    "`memray run --trace-python-allocators`, ended with Ctrl-C, then the report of leaks; memory is charged "
    "to the innermost line of the trainer's own script. It tells one moment only, so a finding is a line of "
    "the script that holds 1 MB for each minute of the run"
)


def command(script: Path, capture: Path) -> list[str]:
    options = ["--force", "--quiet", "--trace-python-allocators", "--output", str(capture)]
    return [sys.executable, "-m", "memray", "run", *options, str(script)]


def findings(capture: Path, script: Path, seconds: float) -> tuple[ToolFinding, ...]:
    """Read the leaks of a capture."""
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
