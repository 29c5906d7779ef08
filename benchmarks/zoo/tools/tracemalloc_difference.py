"""tracemalloc: snapshots compared by line, the standard library's way."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from typing import Any

from benchmarks.zoo.score import ToolFinding
from benchmarks.zoo.tools import growth, inside

TITLE = "tracemalloc"
RULE = (
    "snapshots with 16 frames; memory is charged to the innermost line of the trainer's own script, else to "
    "the innermost line"
)
FRAMES = 16


def start() -> None:
    tracemalloc.start(FRAMES)


def watch(seconds: float, script: str) -> list[Any]:
    began, looks = time.monotonic(), []
    for share in growth.LOOKS:
        inside.sleep_until(began, share * seconds)
        looks.append(_by_line(script))
    return growth.steady(looks, at_least=growth.least_bytes(seconds))


def findings(output: list[Any]) -> tuple[ToolFinding, ...]:
    """Findings of what `watch` returned."""
    return tuple(ToolFinding(sites=(site(name),)) for name, _ in output)


def site(name: str) -> tuple[str, int]:
    """File and line of `file:line`."""
    file, _, line = name.rpartition(":")
    return file, int(line)


def _by_line(script: str) -> dict[str, float]:
    held: Counter[str] = Counter()
    for statistic in tracemalloc.take_snapshot().statistics("traceback"):
        frames = list(statistic.traceback)  # the innermost is the last
        own = [frame for frame in frames if frame.filename == script]
        frame = (own or frames)[-1]
        held[f"{frame.filename}:{frame.lineno}"] += statistic.size
    return dict(held)
