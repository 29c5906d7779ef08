"""Whether growth keeps its pace, in time, by the step or by the cycle. A cache that fills slows down."""

from __future__ import annotations

from collections.abc import Iterable

from heapwatch.explain.series import Series

STEADY_SECONDS = 200.0  # the rules ask for it at three looks on end, a minute more
_HALVES = (0.92, 1.25)  # the last half against the first; a cache that fills for half an hour has less


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
    ratio = _late_against_early(level, first, last)
    if ratio is None:
        return False
    by_count = (_late_against_early(pace, first, last) for pace in paces)
    ratios = [ratio, *(ratio / other for other in by_count if other)]
    return any(_HALVES[0] < one < _HALVES[1] for one in ratios)


def _late_against_early(level: Series, first: float, last: float) -> float | None:
    """The rise in the last half of a time against that in the first; None where the first has none."""
    began, middle, end = (level.at(time) for time in (first, (first + last) / 2, last))
    if began is None or middle is None or end is None or middle <= began:
        return None
    return (end - middle) / (middle - began)
