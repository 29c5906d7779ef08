"""`heapwatch report`: prints a report on a run from the recording that its trainer wrote."""

from __future__ import annotations

import argparse
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

from heapwatch.cli import above_zero
from heapwatch.errors import UsageError
from heapwatch.judge.verdict import exit_code
from heapwatch.recording.file import NoRecording, read_recording
from heapwatch.report.document import LARGE_BYTES, as_text
from heapwatch.report.findings import analyse
from heapwatch.text.terminal import say

_LOG_LINES = 50
_EPILOG = """
exit codes:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit
  3   no report: the record cannot be read, or has fewer than two samples
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "report",
        help="report on a run's memory, and what leaks",
        description="Report on a run: its memory by generation and phase, its objects, and the finding.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "recording", type=Path, help="file that the trainer wrote (heapwatch.start(record=FILE))"
    )
    parser.add_argument(
        "--large",
        type=above_zero("a number of megabytes", 1e12),
        default=LARGE_BYTES / 1e6,
        metavar="MB",
        help="size of a large object (%(default)g)",
    )
    parser.add_argument(
        "--rows",
        type=_rows,
        default=30,
        metavar="N",
        help="lines of the trend at most, 0 for all (%(default)s)",
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help=f"add the last {_LOG_LINES} lines of the trainer's log"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report, and return the exit code of its verdict."""
    try:
        recording = read_recording(arguments.recording)
    except NoRecording as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if len(recording.points) < 2:
        say("heapwatch: too short to judge: the record has one sample", error=True)
        return 3
    report = analyse(recording)
    if arguments.log:
        report = replace(report, log=_last_lines(arguments.log))
    say(*as_text(report, arguments.rows, arguments.large * 1e6).split("\n"))
    return exit_code(report.verdict)


def _last_lines(log: Path) -> list[str]:
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            return [line.rstrip("\n") for line in deque(lines, _LOG_LINES)]
    except OSError as error:
        raise UsageError(f"{log} cannot be read: {error.strerror or error}") from None


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) == 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of lines; allowed: 0 for all, or 2 and more"
        )
    return int(text)
