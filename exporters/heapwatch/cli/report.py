"""`heapwatch report`: a report on a run, from Prometheus or from the trainer's own file."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import Metric

from heapwatch.analysis.readings import Readings
from heapwatch.analysis.verdict import exit_code
from heapwatch.cli import above_zero
from heapwatch.errors import Unreachable, UsageError
from heapwatch.explain.received import exposed_explanation
from heapwatch.http.client import base_url, data_of, escaped, get_json, understood
from heapwatch.recording.file import NoRecording, read_recording
from heapwatch.recording.points import CYCLES, Point, Run, point_of
from heapwatch.report.document import as_html, as_markdown, as_text, headline, sections, title
from heapwatch.report.findings import Report, analyse
from heapwatch.runtime.own_files import UnusableFile, open_own
from heapwatch.runtime.plain_text import json_text, plain, say

_megabytes = above_zero("a number of megabytes", 1e12)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LOG_LINES = 50
_LOG_BYTES = 100_000  # at its end, in which they are looked for
_NAMES = (
    "trainer_info|trainer_process_(resident|virtual)_memory_bytes|trainer_gpu_memory_(allocated|reserved)_bytes"
    "|trainer_buffer_(bytes|items|capacity_bytes|capacity_items)|trainer_bodies|trainer_entities"
    "|trainer_event_list_(items|capacity_items)|trainer_objects|trainer_object_size_bytes|trainer_growth_limit"
    "|trainer_progress_total|trainer_phase_(end_resident|delta).*|trainer_phase_memory_delta_bytes"
    "|trainer_phase_duration_seconds_count|process_start_time_seconds"
    "|trainer_memory_(verdict|growth_bytes_per_minute|growth_explained_ratio|time_to_limit_seconds)"
    "|trainer_growing_path_.*|trainer_exporter_sample_age_seconds"
)
_SCRAPE_SECONDS = 15.0
_MOST_STEPS = 3000
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
        type=_megabytes,
        metavar="MB",
        help="growth per cycle that makes a named object a leak (default: what the trainer declares, else 5)",
    )
    parser.add_argument(
        "--large", type=_megabytes, default=50.0, metavar="MB", help="size of a large object (%(default)g)"
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
    """Print the report to a terminal, with colours for verdicts; ImportError without rich."""
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


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) == 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of lines; allowed: 0 for all, or 2 and more"
        )
    return int(text)


class _PhaseEnd(NamedTuple):
    phase: str
    run: float
    resident_bytes: float
    delta_bytes: float


def read_prometheus(url: str, *, job: str, instance: str | None, since_seconds: float) -> Run:
    """The run of one trainer of a job, from its last start on.

    Raises:
        UsageError: there is no such trainer, or several and no instance (`host:port`) was given.
        Unreachable: Prometheus does not answer.

    """
    now = time.time()
    step = max(_SCRAPE_SECONDS, since_seconds / _MOST_STEPS)
    selector = f'job="{escaped(job)}"' + (f', instance="{escaped(instance)}"' if instance else "")
    answer = get_json(
        f"{url}/api/v1/query_range",
        {
            "query": f'{{__name__=~"{_NAMES}", {selector}}}',
            "start": f"{now - since_seconds:.3f}",
            "end": f"{now:.3f}",
            "step": f"{step:.3f}",
        },
    )
    exposed: dict[float, Metric] = defaultdict(lambda: Metric("all", "", "unknown"))
    instances = set()
    with understood(url):
        for series in data_of(answer).get("result", []):
            labels = {str(name): str(value) for name, value in series["metric"].items()}
            instances.add(labels.get("instance", ""))
            for moment, value in series["values"]:
                exposed[float(moment)].add_sample(labels["__name__"], labels, float(value))
    if len(instances) > 1:
        raise UsageError(
            f"job {job} has several trainers; choose with --instance: {', '.join(sorted(instances))}"
        )
    run = run_points([(moment, Readings([exposed[moment]])) for moment in sorted(exposed)])
    if not run.points:
        whom = f"{instance} in job {job}" if instance else f"job {job}"
        raise UsageError(f"Prometheus has nothing of {whom} in the last {since_seconds / 3600:g} h")
    return replace(run, trainer=run.trainer or max(instances))


def run_points(exposed: list[tuple[float, Readings]]) -> Run:
    """The points that expositions show: from the last start on, every end of a phase that was seen.

    Phases that ended between two expositions are ordered so that each begins with the memory at which the
    previous one ended.
    """
    starts = [readings.value("process_start_time_seconds") for _, readings in exposed]
    first = max((i for i, (a, b) in enumerate(pairwise(starts), 1) if a and b and b - a > 1), default=0)
    notes = () if first == 0 else ("The trainer was restarted; the report begins with its last start.",)
    exposed = exposed[first:]
    points: list[Point] = []
    before: Readings | None = None
    for moment, readings in exposed:
        began = readings.value("process_start_time_seconds")
        is_start = before is None and began is not None and moment - began < 4 * _SCRAPE_SECONDS
        point = point_of(readings, time=moment, event="start" if is_start else "sample")
        if point is None:
            continue
        ended = [] if before is None else _in_order(_ended(before, readings), points[-1].resident_bytes)
        points += [_at_phase_end(point, phase) for phase in ended] or [point]
        before = readings
    trainer = before.labels("trainer_info").get("trainer", "") if before else ""
    explanation = exposed_explanation(before) if before else None
    return Run(trainer, tuple(points), notes, explanation.as_json() if explanation else None)


def _ended(before: Readings, now: Readings) -> list[_PhaseEnd]:
    counted_before = before.by("trainer_phase_duration_seconds_count", "phase")
    resident = now.by("trainer_phase_end_resident_memory_bytes", "phase")
    delta = now.by("trainer_phase_memory_delta_bytes", "phase")
    return [
        _PhaseEnd(phase, count, resident[phase], delta.get(phase, 0.0))
        for phase, count in now.by("trainer_phase_duration_seconds_count", "phase").items()
        if count > counted_before.get(phase, 0) and phase in resident
    ]


def _in_order(ended: list[_PhaseEnd], resident_bytes: float) -> list[_PhaseEnd]:
    ordered, left = [], list(ended)
    while left:
        following = min(left, key=lambda end: abs(end.resident_bytes - end.delta_bytes - resident_bytes))
        left.remove(following)
        ordered.append(following)
        resident_bytes = following.resident_bytes
    return ordered


def _at_phase_end(point: Point, end: _PhaseEnd) -> Point:
    progress = point.progress
    unit = next((unit for unit in CYCLES if unit in progress), None)
    if unit is not None and abs(progress[unit] - end.run) <= 1:
        # A phase that runs once a cycle belongs to the cycle of its own number.
        progress = {**progress, unit: end.run - 1}
    return replace(
        point,
        event="phase",
        phase=end.phase,
        resident_bytes=end.resident_bytes,
        delta_bytes=end.delta_bytes,
        progress=progress,
    )
