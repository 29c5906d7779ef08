"""When a level of a recorded run began to rise, and by how much a cycle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from heapwatch.judge.rates import median_slope

# (number of the cycle, level), in rising order of the number; the first is the baseline.
Points = Sequence[tuple[float, float]]

_FITTED = 64  # levels, and places of a bend, that are tried at most
_WITHIN = 0.25  # cycles by which the bend may be found too early


def rise_of(series: Points) -> tuple[float, int, float]:
    """The bend after which a level rises, its first cycle after that, and by how much a cycle it rises.

    It is fitted as a constant, then a straight line, by least squares of the level's floor, so that a level
    that was not read for some cycles before or after the bend, as on a busy machine, is placed between its
    readings. Where the level stood still until then and was read in each cycle, no fit is needed: it is the
    first cycle above, and the rise since that one. At least two readings.
    """
    every = math.ceil(len(series) / _FITTED)
    floor, lowest = [], math.inf
    for cycle, level in series[::-1][::every]:
        lowest = min(lowest, level)
        floor.append((cycle, lowest))
    first, last = series[0][0], series[-1][0]
    step = (last - first) / _FITTED
    _, bend = min(_hinge(floor, first + step * place) for place in range(_FITTED))
    _, bend = min(_hinge(floor, bend + step * (place / 8 - 1)) for place in range(17))
    exact = _first_above(series)
    if exact is not None and exact[0] - 1 - step <= bend <= exact[0] + step:
        return max(first, bend), *exact
    risen = [point for point in reversed(floor) if point[0] > bend]
    rate = median_slope(risen if len(risen) > 2 else floor[::-1])
    return max(first, bend), max(math.floor(bend + _WITHIN) + 1, int(first) + 1), rate


def _first_above(series: Points) -> tuple[int, float] | None:
    """The first cycle above a level that stood still, and by how much a cycle it rises from then on."""
    still = series[0][1]
    for (before, _), (cycle, level) in pairwise(series):
        if level != still:
            last, current = series[-1]
            rate = (current - level) / (last - cycle) if last > cycle else level - still
            return (int(cycle), rate) if level > still and cycle == before + 1 else None
    return None


def _hinge(floor: Points, bend: float) -> tuple[float, float]:
    """Squared error of the best line that rises from this cycle on, and the cycle."""
    after = [max(0.0, cycle - bend) for cycle, _ in floor]
    middle, mean = fmean(after), fmean(level for _, level in floor)
    spread = sum((passed - middle) ** 2 for passed in after)
    if not spread:
        return math.inf, bend
    off = [(passed - middle, level - mean) for passed, (_, level) in zip(after, floor, strict=True)]
    slope = sum(passed * level for passed, level in off) / spread
    return sum((level - slope * passed) ** 2 for passed, level in off), bend
