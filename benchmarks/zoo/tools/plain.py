"""No tool at all: by how much a script and its children grow."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.zoo.running import run
from benchmarks.zoo.tools.growth import LOOKS


def growth_per_minute(script: Path, folder: Path, seconds: float) -> float:
    """Bytes a minute that the script's processes grow by, from the first look to the last.

    Raises:
        RuntimeError: the script ended before its time, or the machine was too busy to look at it.

    """
    points: list[tuple[float, int]] = []

    def look(pid: int, elapsed: float) -> None:
        points.append((elapsed, _resident(pid)))

    outcome = run([sys.executable, str(script)], folder, seconds, interrupt=True, look=look)
    if outcome.seconds < seconds:
        raise RuntimeError(f"ended after {outcome.seconds:.0f} s: {outcome.last_words}")
    late = [point for point in points if point[0] >= LOOKS[0] * seconds]
    if len(late) < 2:
        raise RuntimeError(f"looked at {len(late)} times after {LOOKS[0]:.0%} of {seconds:.0f} s")
    (began, first), (ended, last) = late[0], late[-1]
    return (last - first) / (ended - began) * 60


def _resident(pid: int) -> int:
    """Bytes of the process and what is its children's alone."""
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        total = process.memory_info().rss
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                total += child.memory_full_info().uss
    return total
