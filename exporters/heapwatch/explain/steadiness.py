"""Whether growth keeps its rate: in time, per step or per cycle. A cache that fills slows down."""

from __future__ import annotations

from collections.abc import Iterable

from heapwatch.explain.series import LevelSeries

STEADY_SECONDS = 200.0  # least time of even growth; the rules wait for three evaluations in addition
_HALVES = (0.92, 1.25)  # limits of the second half's rise over the first's; a filling cache stays below
_COUNT_ERROR = 0.5  # items


def is_steady(level: LevelSeries, paces: Iterable[LevelSeries], start: float) -> bool:
    """Whether a level rose as much in the second half of the time since `start` as in the first half.

    Args:
        level: what grows.
        paces: counts of progress, such as steps; a rise may be even per step instead of in time.
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


def _rises(level: LevelSeries, first: float, last: float) -> tuple[float, float]:
    """The rise in the first and in the second half of a time; zeros if it is unknown."""
    began, middle, end = (level.at(time) for time in (first, (first + last) / 2, last))
    if began is None or middle is None or end is None:
        return 0.0, 0.0
    return middle - began, end - middle
