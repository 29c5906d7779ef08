"""Finds the cycle in which a level of a recorded run began to rise, and its rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from heapwatch.judge.rates import median_slope

# (number of the cycle, level), in rising order of the number; the first is the baseline.
Points = Sequence[tuple[float, float]]

_FITTED = 64  # most levels, and most positions of the bend, in a fit
_WITHIN = 0.25  # error of the bend, in cycles
_BENT = 0.2  # least distance of the floor from the line between its ends, as a share of the rise
_STOOD = 0.02  # most rise of a constant level, as a share of the rise that follows


def rise_of(series: Points, bound: float | None = None) -> tuple[float, int, float]:
    """The bend after which a level rises, the first cycle after it, and the rise per cycle.

    If a level rose, was constant and rose again, the later rise counts. The fit is a constant followed by a
    straight line, by least squares on the level's floor. So a bend between two readings is interpolated if
    a busy machine skipped cycles. If the level was constant and was read in each cycle, no fit is needed:
    the rise begins with the first higher reading. Needs at least two readings.

    Args:
        series: the levels.
        bound: the largest allowed level, if the last one exceeds it: only the excess counts as the rise.

    """
    if bound is not None:
        series = [(cycle, max(level, bound)) for cycle, level in series]
    floor, lowest = [], math.inf
    for cycle, level in series[::-1]:
        lowest = min(lowest, level)
        floor.append((cycle, lowest))
    floor, still = _since_it_stood_still(floor[::-1])
    began, first, last = series[0][0], floor[0][0], floor[-1][0]
    fitted, step = _thinned(floor), (last - first) / _FITTED
    _, bend = min(_fit_bend(fitted, first + step * place) for place in range(_FITTED))
    _, bend = min(_fit_bend(fitted, bend + step * (place / 8 - 1)) for place in range(17))
    if bound is not None:
        bend = _crossing(series, bound, bend)
        still = next((cycle for cycle, level in reversed(series) if level == bound), still)
    exact = _first_above([point for point in series if point[0] >= still])
    if exact is not None and exact[0] - 1 - step <= bend <= exact[0] + step:
        return max(began, bend), *exact
    rise = [point for point in floor if point[0] > bend]
    rate = median_slope(_thinned(rise if len(rise) > 2 else floor))
    return max(began, bend), max(math.floor(bend + _WITHIN) + 1, int(began) + 1), rate


def _thinned(points: Points) -> Points:
    """At most `_FITTED` evenly spaced points, including the last."""
    return points[::-1][:: math.ceil(len(points) / _FITTED)][::-1]


def _since_it_stood_still(floor: list[tuple[float, float]]) -> tuple[list[tuple[float, float]], float]:
    """The floor from its last nearly constant part on, all if it rises from its start.

    The second value is the first cycle at the exact level of that part's end.
    """
    above, knee = max((offset, index) for index, offset in enumerate(_offsets(floor)))
    for start in (0, knee) if above > _BENT else (0,):
        part = floor[start:]
        depths = [-offset for offset in _offsets(part)]
        if max(depths) <= _BENT:
            continue
        begin, end = _longest_standstill(part, depths.index(max(depths)))
        still = next(cycle for cycle, level in part if level == part[end][1])
        return part[begin:], still
    return floor, floor[0][0]


def _longest_standstill(floor: Points, last_index: int) -> tuple[int, int]:
    """First and last index of the longest nearly constant part of a floor that ends by `last_index`."""
    longest, start = (0, 0), 0
    for index in range(last_index + 1):
        while floor[index][1] - floor[start][1] > _STOOD * (floor[-1][1] - floor[index][1]):
            start += 1
        if floor[index][0] - floor[start][0] > floor[longest[1]][0] - floor[longest[0]][0]:
            longest = start, index
    return longest


def _first_above(series: Points) -> tuple[int, float] | None:
    """The first cycle above a constant level, and the rise per cycle from then on."""
    still = series[0][1]
    index = next((index for index, (_, level) in enumerate(series) if level != still), None)
    if index is None:
        return None
    (previous, _), (cycle, level), (last, current) = series[index - 1], series[index], series[-1]
    if level < still or cycle != previous + 1 or (cycle < last and series[index + 1][1] == level):
        return None
    return int(cycle), (current - level) / (last - cycle) if last > cycle else level - still


def _offsets(floor: Points) -> list[float]:
    """Distance of each level above the line from the first point to the last, as a share of the rise."""
    (first, low), (last, high) = floor[0], floor[-1]
    if high <= low:
        return [0.0] * len(floor)
    return [(level - low) / (high - low) - (cycle - first) / (last - first) for cycle, level in floor]


def _crossing(series: Points, bound: float, bend: float) -> float:
    """The cycle in which a level exceeded its bound, from the adjacent readings, else from `bend`.

    A reading may repeat an earlier one: the distance to the next different one is the reading interval.
    """
    index = next((index for index in range(len(series), 0, -1) if series[index - 1][1] <= bound), 0)
    if index in (0, len(series)):
        return series[0][0] if index == 0 else bend
    (earlier, _), (later_cycle, level) = series[index - 1], series[index]
    later = next((point for point in series[index:] if point[1] > level), None)
    if later is None:
        return min(max(bend, earlier), later_cycle - 2 * _WITHIN)
    interval = later[0] - later_cycle
    overshoot = interval * (level - bound) / (later[1] - level)
    return min(max(later_cycle - overshoot, min(earlier, later_cycle - interval)), later_cycle - 2 * _WITHIN)


def _fit_bend(floor: Points, bend: float) -> tuple[float, float]:
    """Squared error of the best constant-then-linear fit with this bend, and the bend."""
    distances = [max(0.0, cycle - bend) for cycle, _ in floor]
    middle, mean = fmean(distances), fmean(level for _, level in floor)
    spread = sum((distance - middle) ** 2 for distance in distances)
    if not spread:
        return math.inf, bend
    pairs = [(distance - middle, level - mean) for distance, (_, level) in zip(distances, floor, strict=True)]
    slope = sum(distance * level for distance, level in pairs) / spread
    return sum((level - slope * distance) ** 2 for distance, level in pairs), bend
