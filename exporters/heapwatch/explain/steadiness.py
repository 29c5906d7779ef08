"""Whether growth keeps its pace, in time, by the step or by the cycle. A cache that fills slows down."""

from __future__ import annotations

from collections.abc import Iterable

from heapwatch.explain.series import Series

STEADY_SECONDS = 200.0  # the rules ask for it at three looks on end, a minute more
_HALVES = (0.92, 1.25)  # the last half against the first; a cache that fills for half an hour has less
_COUNT_ERROR = 0.5  # items


def is_steady(level: Series, paces: Iterable[Series], start: float) -> bool:
    """Whether a level rose as much in the last half of the time from `start` on as in the first.

    Args:
        level: what grows.
        paces: counts of what the program does, such as steps: a rise may also be even by one of them.
        start: seconds, on the clock of the readings.

    """
    known = level.since(start)
    if not known or known[-1].end - known[0].end < STEADY_SECONDS:
        return False
    first, last = known[0].end, known[-1].end
    early, late = _rises(level, first, last)
    if early <= _COUNT_ERROR:
        return False
    least = (late - _COUNT_ERROR) / (early + _COUNT_ERROR)
    most = (late + _COUNT_ERROR) / (early - _COUNT_ERROR)
    changes = [1.0]
    for pace in paces:
        before, after = _rises(pace, first, last)
        if before > 0 and after > 0:
            changes.append(after / before)
    return any(most / change > _HALVES[0] and least / change < _HALVES[1] for change in changes)


def _rises(level: Series, first: float, last: float) -> tuple[float, float]:
    """The rise in the first and in the last half of a time; none where it is not known."""
    began, middle, end = (level.at(time) for time in (first, (first + last) / 2, last))
    if began is None or middle is None or end is None:
        return 0.0, 0.0
    return middle - began, end - middle
