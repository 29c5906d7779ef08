"""`heapwatch report`: a report on a run, from Prometheus or from the trainer's own file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heapwatch.analysis.verdict import exit_code
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url
from heapwatch.recording.file import NoRecording, read_recording
from heapwatch.recording.points import Run
from heapwatch.report.document import as_html, as_markdown, as_text, headline, sections, title
from heapwatch.report.findings import Report, analyse
from heapwatch.report.prometheus import read_prometheus
from heapwatch.runtime.own_files import UnusableFile, open_own
from heapwatch.runtime.plain_text import json_text, plain, say

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LOG_LINES = 50
_LOG_BYTES = 100_000  # at its end, in which they are looked for
_EPILOG = """
exit codes:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit
  3   no report: Prometheus does not respond, or the record has fewer than two samples
  64  the command line is wrong
"""


def as_json(report: Report, _most_rows: int) -> str:
    """The report with all its numbers, in bytes."""
    explanation = report.explanation
    document = {
        "verdict": report.verdict,
        "headline": headline(report),
        **asdict(report),
        "explanation": explanation and explanation.as_json(),
    }
    for kind in ("objects", "sizes"):
        for name, judged in getattr(report, kind).items():
            document[kind][name]["change"] = judged.change
    return json_text(document)


_FORMATS: dict[str, Callable[[Report, int], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "html": as_html,
    "json": as_json,
}


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "report",
        help="report on a run's memory, and what leaks",
        description="Report on a run: its memory by generation and phase, its objects, and the finding.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "recording", nargs="?", type=Path, help="file that the trainer wrote (heapwatch.start(record=FILE))"
    )
    parser.add_argument("--prometheus", metavar="URL", help="read the run from Prometheus instead")
    parser.add_argument("--instance", metavar="HOST:PORT", help="the trainer, if several are scraped")
    parser.add_argument("--job", default="trainer", metavar="NAME", help="scrape job (%(default)s)")
    parser.add_argument(
        "--since",
        type=_duration,
        default="6h",
        metavar="TIME",
        help="how far back, in s, m, h or d (%(default)s)",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text", help="output format (%(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write there instead of to the terminal")
    parser.add_argument(
        "--growth-limit",
        type=_above_zero,
        metavar="MB",
        help="growth per cycle that makes a named object a leak (default: what the trainer declares, else 5)",
    )
    parser.add_argument(
        "--large", type=_above_zero, default=50.0, metavar="MB", help="size of a large object (%(default)g)"
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
    """Write the report, and return the exit code of its verdict.

    Raises:
        UsageError: the arguments contradict each other, or a file cannot be written.

    """
    try:
        found = _read(arguments)
    except (Unreachable, NoRecording) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if len(found.points) < 2:
        say("heapwatch: too short to judge: the record has one sample", error=True)
        return 3
    _progress(f"analysing {len(found.points):,} samples")
    limit = arguments.growth_limit * 1e6 if arguments.growth_limit else None
    report = analyse(found, large_bytes=arguments.large * 1e6, size_limit_bytes=limit)
    if arguments.log:
        report = replace(report, log=_last_lines(arguments.log))
    _write(report, arguments)
    return exit_code(report.verdict)


def _read(arguments: argparse.Namespace) -> Run:
    if (arguments.recording is None) == (arguments.prometheus is None):
        raise UsageError("report needs a recorded file or --prometheus URL, and not both")
    _progress(f"reading {arguments.recording or 'the run from Prometheus'}")
    if arguments.recording is not None:
        return read_recording(arguments.recording)
    return read_prometheus(
        base_url(arguments.prometheus),
        job=arguments.job,
        instance=arguments.instance,
        since_seconds=arguments.since,
    )


def _last_lines(log: Path) -> list[str]:
    try:
        with os.fdopen(open_own(log, named=True), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            return file.read(_LOG_BYTES).decode(errors="replace").splitlines()[-_LOG_LINES:]
    except FileNotFoundError:
        raise UsageError(f"{log} does not exist") from None
    except UnusableFile as error:
        raise UsageError(str(error)) from None


def _progress(text: str) -> None:
    """Print progress, at a terminal only."""
    if sys.stderr.isatty():
        say(f"heapwatch: {text} ...", error=True)


def _write(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.output is None and arguments.format == "text" and sys.stdout.isatty():
        try:
            print_in_colours(report, arguments.rows)
            return
        except ImportError:  # without rich
            pass
    lines = _FORMATS[arguments.format](report, arguments.rows).split("\n")
    if arguments.output is None:
        say(*lines)
        return
    partial = arguments.output.with_name(f"{arguments.output.name}.{os.getpid()}.tmp")
    try:
        with partial.open("x", encoding="utf-8") as file:  # does not follow an existing link
            file.write("\n".join(map(plain, lines)))
        partial.replace(arguments.output)
    except OSError as error:
        raise UsageError(f"{arguments.output} cannot be written: {error.strerror}") from None


def print_in_colours(report: Report, most_rows: int) -> None:
    """Print the report to a terminal, with colours for verdicts.

    Raises:
        ImportError: rich is not installed.

    """
    from rich.table import Table

    from heapwatch.runtime.plain_text import console, literal

    terminal = console()
    terminal.print(literal(title(report), style="bold"))
    for section in sections(report, most_rows):
        terminal.print()
        terminal.print(literal(section.title, style="bold cyan"))
        if section.rows:
            table = Table(box=None, pad_edge=False, show_header=any(section.columns))
            for position, column in enumerate(section.columns):
                is_text = position == 0 or column == "Verdict"
                table.add_column(column, justify="left" if is_text else "right")
            for row in section.rows:
                table.add_row(*(literal(cell, style=_style(cell)) for cell in row))
            terminal.print(table)
        for line in section.lines:
            terminal.print(literal(line, style=_style(line)))


def _style(text: str) -> str:
    return "bold red" if text.startswith(("LEAK", "WARNING")) else ""


def _duration(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; write a number and s, m, h or d, such as 6h"
        )
    return float(int(found[1]) * _SECONDS[found[2]])


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of megabytes above 0")
    return value


def _rows(text: str) -> int:
    if not text.isdigit() or int(text) == 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of lines; allowed: 0 for all, or 2 and more"
        )
    return int(text)
