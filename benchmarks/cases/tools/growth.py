"""What grew between snapshots of a heap, and how much a script grows without any tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from benchmarks.running import run

# When snapshots are taken, as shares of the time; before the first, everything is warm-up.
SNAPSHOTS = (0.4, 0.6, 0.8, 1.0)
BYTES_PER_MINUTE = 1e6


def steady(snapshots: Sequence[Mapping[str, float]], *, at_least: float) -> list[tuple[str, float]]:
    """Names that grew in every round and by `at_least` altogether, with their growth, most first."""
    grown = [
        (name, snapshots[-1].get(name, 0.0) - snapshots[0].get(name, 0.0))
        for name in snapshots[-1]
        if all(after.get(name, 0.0) > before.get(name, 0.0) for before, after in pairwise(snapshots))
    ]
    return sorted((pair for pair in grown if pair[1] >= at_least), key=lambda pair: -pair[1])


def least_bytes(seconds: float) -> float:
    """Growth between the first snapshot and the last that matters, for tools that report bytes."""
    return BYTES_PER_MINUTE * seconds * (SNAPSHOTS[-1] - SNAPSHOTS[0]) / 60


def growth_per_minute(script: Path, folder: Path, seconds: float) -> float:
    """Bytes a minute that the script's processes grow by, from the first reading to the last.

    Raises:
        RuntimeError: the script ended before its time, or the machine was too busy to look at it.

    """
    points: list[tuple[float, int]] = []
    outcome = run(
        [sys.executable, str(script)], folder, seconds, interrupt=True,
        poll=lambda pid, elapsed: points.append((elapsed, _resident(pid))),
    )  # fmt: skip
    if outcome.seconds < seconds:
        raise RuntimeError(f"ended after {outcome.seconds:.0f} s: {outcome.last_words}")
    late = [point for point in points if point[0] >= SNAPSHOTS[0] * seconds]
    if len(late) < 2:
        raise RuntimeError(f"looked at {len(late)} times after {SNAPSHOTS[0]:.0%} of {seconds:.0f} s")
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
