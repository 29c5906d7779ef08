"""Growth of memory that is explained: buffers that fill, what malloc keeps, pages that are touched late."""

from __future__ import annotations

import math

from heapwatch.analysis.process import Process, same_process
from heapwatch.analysis.timeline import Sums, Values, at, before, bridged, highest, lowest, steps

BUFFER_TOLERANCE, TOLERANCE = 0.25, 1.25
TOLERANCE_MINUTES = (16, 6)
GAP_MINUTES = 10  # without samples, which is bridged


def explained(process: Process, gains: Sums) -> list[float]:
    """Growth of memory, per minute, up to which something explains it; minus infinity where nothing is known.

    Args:
        process: what is known of the trainer.
        gains: by how much the high-water mark of its memory rose at each look.

    """
    parts: list[list[float]] = []
    if process.bounded is not None:
        parts.append([BUFFER_TOLERANCE * (risen or 0.0) for risen in _risen(process.bounded, 16)])
    if process.retained is not None:
        parts.append([TOLERANCE * kept for kept in retention(process)])
    if process.virtual is not None:
        parts.append([TOLERANCE * pages for pages in _touched(process, process.virtual, gains)])
    return [sum(together) for together in zip(*parts, strict=True)] or [-math.inf] * len(process.time)


def retention(process: Process) -> list[float]:
    """Growth per minute of what malloc keeps though it is free."""
    if process.retained is None:
        return [0.0] * len(process.time)
    slow, fast = _risen(lowest(process.retained, steps(3)), 16), _risen(process.retained, 6)
    return [max(one or 0.0, other or 0.0, 0.0) for one, other in zip(slow, fast, strict=True)]


def retention_slows(process: Process, share: float) -> list[bool]:
    """Whether malloc keeps less than `share` as much in the last eight minutes as in those before."""
    now = lowest(process.retained or [None] * len(process.time), steps(3))
    half, first = before(now, steps(8)), before(now, steps(16))
    return [
        latest is not None
        and middle is not None
        and earliest is not None
        and latest - middle < share * (middle - earliest)
        for latest, middle, earliest in zip(now, half, first, strict=True)
    ]


def _risen(values: Values, minutes: int) -> Values:
    """By how much a minute each value is above that of so many minutes ago, or the one known before."""
    return [
        None if now is None or then is None else (now - then) / minutes
        for now, then in zip(values, before(bridged(values, steps(GAP_MINUTES)), steps(minutes)), strict=True)
    ]


def _touched(process: Process, virtual: Values, gains: Sums) -> list[float]:
    """Growth per minute that virtual memory does not share: pages of an earlier allocation are touched."""
    touched = [0.0] * len(virtual)
    for minutes in TOLERANCE_MINUTES:
        tops = highest(virtual, steps(minutes) + 1)
        for look, now in enumerate(tops):
            gained = gains.over(steps(minutes), look)
            if gained <= 0 or not same_process(process, look, minutes):
                continue
            then = _top_before(process, virtual, tops, minutes, look)
            if now is not None and then is not None:
                touched[look] = max(touched[look], (gained - max(now - then, 0.0)) / minutes)
    return touched


def _top_before(process: Process, virtual: Values, tops: Values, minutes: int, look: int) -> float | None:
    """The most virtual memory of the window before, or what this process had at its end if it began in it."""
    then, earlier = look - steps(minutes), at(process.start, look - 2 * steps(minutes))
    another = earlier is not None and earlier != process.start[look]
    return at(virtual if another else tops, then)
