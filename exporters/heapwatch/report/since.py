"""When a level of a recorded run began to rise, and by how much a cycle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from heapwatch.judge.rates import median_slope

# (number of the cycle, level), in rising order of the number; the first is the baseline.
Points = Sequence[tuple[float, float]]

_FITTED = 64  # levels, and places of a bend, that are tried at most
_WITHIN = 0.25  # cycles by which the bend may be found too early
_BENT = 0.2  # share of a rise by which the floor leaves the straight line from its first to its last point
_STOOD = 0.02  # share of a rise by which a level that stood still before it may have risen


def rise_of(series: Points, bound: float | None = None) -> tuple[float, int, float]:
    """The bend after which a level rises, its first cycle after that, and by how much a cycle it rises.

    Of a level that has risen before and stood still since then it is the later rise. It is fitted as a
    constant, then a straight line, by least squares of the level's floor, so that a level that was not read
    for some cycles before or after the bend, as on a busy machine, is placed between its readings. Where it
    stood still until then and was read in each cycle, no fit is needed: it is the first cycle above, and the
    rise since that one. At least two readings.

    Args:
        series: the levels.
        bound: the largest allowed level, if the last one is above it: the rise is what exceeds it.

    """
    if bound is not None:
        series = [(cycle, max(level, bound)) for cycle, level in series]
    floor, lowest = [], math.inf
    for cycle, level in series[::-1]:
        lowest = min(lowest, level)
        floor.append((cycle, lowest))
    floor, still = _since_it_stood_still(floor[::-1])
    began, first, last = series[0][0], floor[0][0], floor[-1][0]
    fitted, step = _some(floor), (last - first) / _FITTED
    _, bend = min(_hinge(fitted, first + step * place) for place in range(_FITTED))
    _, bend = min(_hinge(fitted, bend + step * (place / 8 - 1)) for place in range(17))
    if bound is not None:
        bend = _crossing(series, bound, bend)
        still = next((cycle for cycle, level in reversed(series) if level == bound), still)
    exact = _first_above([point for point in series if point[0] >= still])
    if exact is not None and exact[0] - 1 - step <= bend <= exact[0] + step:
        return max(began, bend), *exact
    risen = [point for point in floor if point[0] > bend]
    rate = median_slope(_some(risen if len(risen) > 2 else floor))
    return max(began, bend), max(math.floor(bend + _WITHIN) + 1, int(began) + 1), rate


def _some(points: Points) -> Points:
    """At most as many as are fitted, the last among them."""
    return points[::-1][:: math.ceil(len(points) / _FITTED)][::-1]


def _since_it_stood_still(floor: list[tuple[float, float]]) -> tuple[list[tuple[float, float]], float]:
    """The floor from where it last stood still before it rose, or nearly so; all if it rises from its start.

    The cycle is that from which on it did not change at all.
    """
    above, knee = max((off, at) for at, off in enumerate(_off_the_line(floor)))
    for start in (0, knee) if above > _BENT else (0,):
        part = floor[start:]
        below = [-off for off in _off_the_line(part)]
        if max(below) <= _BENT:
            continue
        begin, end = _longest_standstill(part, below.index(max(below)))
        still = next(cycle for cycle, level in part if level == part[end][1])
        return part[begin:], still
    return floor, floor[0][0]


def _longest_standstill(floor: Points, until: int) -> tuple[int, int]:
    """The first and the last place of the longest time, up to a place, in which a floor hardly rose."""
    found, start = (0, 0), 0
    for at in range(until + 1):
        while floor[at][1] - floor[start][1] > _STOOD * (floor[-1][1] - floor[at][1]):
            start += 1
        if floor[at][0] - floor[start][0] > floor[found[1]][0] - floor[found[0]][0]:
            found = start, at
    return found


def _first_above(series: Points) -> tuple[int, float] | None:
    """The first cycle above a level that stood still, and by how much a cycle it rises from then on."""
    still = series[0][1]
    at = next((at for at, (_, level) in enumerate(series) if level != still), None)
    if at is None:
        return None
    (before, _), (cycle, level), (last, current) = series[at - 1], series[at], series[-1]
    if level < still or cycle != before + 1 or (cycle < last and series[at + 1][1] == level):
        return None
    return int(cycle), (current - level) / (last - cycle) if last > cycle else level - still


def _off_the_line(floor: Points) -> list[float]:
    """How far each level is above the line from the first point to the last, as a share of the rise."""
    (first, low), (last, high) = floor[0], floor[-1]
    if high <= low:
        return [0.0] * len(floor)
    return [(level - low) / (high - low) - (cycle - first) / (last - first) for cycle, level in floor]


def _crossing(series: Points, bound: float, bend: float) -> float:
    """The cycle in which a level left its bound, by the readings around it, else by the bend of all.

    A reading may be that of some cycles before: the next different one tells how often it is read.
    """
    at = next((at for at in range(len(series), 0, -1) if series[at - 1][1] <= bound), 0)
    if at in (0, len(series)):
        return series[0][0] if at == 0 else bend
    (before, _), (after, level) = series[at - 1], series[at]
    later = next((point for point in series[at:] if point[1] > level), None)
    if later is None:
        return min(max(bend, before), after - 2 * _WITHIN)
    every = later[0] - after
    passed = every * (level - bound) / (later[1] - level)
    return min(max(after - passed, min(before, after - every)), after - 2 * _WITHIN)


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
