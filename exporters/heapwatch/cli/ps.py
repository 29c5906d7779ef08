"""`heapwatch ps`: the registered trainers of this machine."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from heapwatch.analysis.limits import ALL_MEMORY
from heapwatch.analysis.readings import Readings
from heapwatch.cli.sources import Sample, TrainerSource, none_registered, registered_trainers
from heapwatch.explain.findings import TimeLeft, foremost, range_text
from heapwatch.explain.received import exposed_explanation
from heapwatch.runtime.plain_text import plain, say, say_json

_LONGEST_CELL = 100


@dataclass(frozen=True)
class ListedTrainer:
    """One trainer; unknown values are None. Memory is that of trainer and workers, in bytes.

    `grows` is the path, or the type, that the verdict is about, or else grows most; `line` fills it.
    """

    trainer: str | None
    address: str
    verdict: str | None
    time_to_limit_seconds: dict[str, float] | None
    grows: str | None
    bytes_per_minute: float | None
    line: str | None
    memory_bytes: float | None
    workers: int | None
    steps: float | None
    cleanups: float | None
    problem: str


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "ps",
        help="list the trainers of this machine",
        description="List the trainers that are registered as targets of this user.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per trainer")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the addresses")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per trainer; returns 0 even if there is none."""
    rows = [_row(sample) for sample in TrainerSource(registered_trainers()).samples()]
    if arguments.json:
        say_json([asdict(row) for row in rows])
    elif arguments.quiet:
        say(*(row.address for row in rows))
    elif not rows:
        say(f"{none_registered()}; start one, or see `heapwatch doctor`")
    else:
        say(*_lines(rows))
    return 0


def _row(sample: Sample) -> ListedTrainer:
    try:
        return _understood(sample)
    except (ValueError, ArithmeticError):  # a number of workers that is none, for example
        return _understood(replace(sample, readings=None, problem="its response is invalid"))


def _understood(sample: Sample) -> ListedTrainer:
    readings = sample.readings or Readings([])
    memory = readings.levels().get(ALL_MEMORY)
    processes = readings.by("trainer_processes", "role")
    steps = readings.by("trainer_progress_total", "unit").get("step")
    cleanups = sum(readings.by("trainer_cleanups_total", "action").values())
    if not all(map(math.isfinite, (memory or 0.0, steps or 0.0, cleanups))):
        raise ValueError("a level that is no number")
    explanation = exposed_explanation(readings)
    first = foremost(explanation) if explanation else None
    left = explanation.time_left if explanation else None
    return ListedTrainer(
        trainer=readings.labels("trainer_info").get("trainer"),
        address=sample.instance,
        verdict=explanation.verdict if explanation else None,
        time_to_limit_seconds=left._asdict() if left else None,
        grows=(first.path or first.type) if first else None,
        bytes_per_minute=first.bytes_per_minute if first else None,
        line=f"{first.site.file}:{first.site.line}" if first and first.site else None,
        memory_bytes=memory,
        workers=int(processes.get("worker", 0)) if processes else None,
        steps=steps,
        cleanups=cleanups if sample.readings else None,
        problem=sample.problem,
    )


def _lines(rows: list[ListedTrainer]) -> list[str]:
    table = [("TRAINER", "ADDRESS", "VERDICT", "LEFT", "MEMORY", "WORKERS", "STEPS", "CLEANUPS", "GROWS")]
    table += [
        (
            row.trainer or "?",
            row.address,
            row.verdict or "",
            range_text(TimeLeft(**row.time_to_limit_seconds)) if row.time_to_limit_seconds else "",
            _cell(row.memory_bytes, 1e6, " MB"),
            _cell(row.workers),
            _cell(row.steps),
            _cell(row.cleanups),
            row.problem or _growth(row),
        )
        for row in rows
    ]
    shown = [[plain(cell, _LONGEST_CELL) for cell in line] for line in table]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in shown]


def _growth(row: ListedTrainer) -> str:
    if row.grows is None:
        return ""
    rate = f" {row.bytes_per_minute / 1e6:+,.1f} MB/min" if row.bytes_per_minute else ""
    return f"{row.grows}{rate}{f' ({row.line})' if row.line else ''}"


def _cell(value: float | None, unit: float = 1, name: str = "") -> str:
    return "" if value is None else f"{value / unit:,.0f}{name}"
