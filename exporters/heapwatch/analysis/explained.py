"""Growth of memory that is no leak: bounded buffers, freed memory that malloc keeps, pages touched late."""

from __future__ import annotations

import math

from heapwatch.analysis.process import Process, same_process
from heapwatch.analysis.timeline import Sums, Values, at, before, bridged, highest, lowest, steps

BUFFER_TOLERANCE, TOLERANCE = 0.25, 1.25
TOLERANCE_MINUTES = (16, 6)
GAP_MINUTES = 10  # longest gap without samples that is bridged


def explained(process: Process, gains: Sums) -> list[float]:
    """Growth of memory per minute that these three causes explain; minus infinity where none is known.

    Args:
        process: series of the trainer's process.
        gains: rise of the high-water mark of its memory at each evaluation.

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
    """Growth per minute of the freed memory that malloc keeps."""
    if process.retained is None:
        return [0.0] * len(process.time)
    slow, fast = _risen(lowest(process.retained, steps(3)), 16), _risen(process.retained, 6)
    return [max(one or 0.0, other or 0.0, 0.0) for one, other in zip(slow, fast, strict=True)]


def retention_goes_on(process: Process, share: float) -> list[bool]:
    """Whether retention grew in the last eight minutes by at least `share` of its growth in those before."""
    now = lowest(process.retained or [None] * len(process.time), steps(3))
    half, first = before(now, steps(8)), before(now, steps(16))
    return [
        latest is not None
        and middle is not None
        and earliest is not None
        and latest - middle >= share * (middle - earliest)
        and same_process(process, index, 16)
        for index, (latest, middle, earliest) in enumerate(zip(now, half, first, strict=True))
    ]


def _risen(values: Values, minutes: int) -> Values:
    """The rise per minute of each value over `minutes`; a gap in the older values is bridged."""
    return [
        None if now is None or then is None else (now - then) / minutes
        for now, then in zip(values, before(bridged(values, steps(GAP_MINUTES)), steps(minutes)), strict=True)
    ]


def _touched(process: Process, virtual: Values, gains: Sums) -> list[float]:
    """Growth per minute without growth of virtual memory: the pages belong to an earlier allocation."""
    touched = [0.0] * len(virtual)
    for minutes in TOLERANCE_MINUTES:
        tops = highest(virtual, steps(minutes) + 1)
        for index, now in enumerate(tops):
            gained = gains.over(steps(minutes), index)
            if gained <= 0 or not same_process(process, index, minutes):
                continue
            then = _top_before(process, virtual, tops, minutes, index)
            if now is not None and then is not None:
                touched[index] = max(touched[index], (gained - max(now - then, 0.0)) / minutes)
    return touched


def _top_before(process: Process, virtual: Values, tops: Values, minutes: int, index: int) -> float | None:
    """The highest virtual memory of the window before; its last value if the process started within it."""
    then, earlier = index - steps(minutes), at(process.start, index - 2 * steps(minutes))
    another = earlier is not None and earlier != process.start[index]
    return at(virtual if another else tops, then)
