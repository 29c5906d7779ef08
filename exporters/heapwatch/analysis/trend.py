"""The trend of a level from cycle to cycle: whether it still rises, how fast, and since which cycle."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from heapwatch.analysis.growth import median_slope

# (number of the cycle, level), in rising order of the number; the first is the baseline.
Points = Sequence[tuple[float, float]]
_MOST_POINTS = 200


def thinned(series: Points, most: int = _MOST_POINTS) -> Points:
    """At most about `most` of the points, evenly spaced, the first and the last among them."""
    if len(series) <= most:
        return series
    step = -(-len(series) // most)
    return [*series[:-1:step], series[-1]]


def last_half(series: Points) -> Points:
    """The second half of the points, at least three of them if there are so many."""
    return series[-max(3, -(-len(series) // 2)) :]


def slope(series: Points) -> float:
    """Median slope per cycle between all pairs of points; 0 for fewer than two."""
    return median_slope(thinned(series)) if len(series) > 1 else 0.0


def noise(series: Points) -> float:
    """Deviation of the levels from their median slope: median absolute deviation, scaled.

    The factor makes it the standard deviation for a normal distribution (Hampel, Journal of the American
    Statistical Association, 1974).
    """
    if len(series) < 3:
        return 0.0
    rate = slope(series)
    residuals = [level - rate * cycle for cycle, level in series]
    middle = median(residuals)
    return 1.4826 * median(abs(residual - middle) for residual in residuals)


def kept(series: Points) -> float:
    """The lowest level in the last quarter of the points."""
    return min(level for _, level in series[-max(1, len(series) // 4) :])


def settled(series: Points) -> Points:
    """The points from the lowest one of the first quarter on: a spike at the start is no baseline."""
    early = series[: max(1, len(series) // 4)]
    start = min(range(len(early)), key=lambda at: early[at][1], default=0)
    return series[start:]


def still_rises(series: Points, tolerance: float) -> bool:
    """Whether the level rises in the second half, by more than `tolerance` and more than its noise.

    Its slope there must be at least a quarter of the overall slope. A level that levels off fails this.
    """
    if len(series) < 3:
        return False
    late = last_half(series)
    pace, span = slope(late), late[-1][0] - late[0][0]
    overall = (kept(series) - series[0][1]) / (series[-1][0] - series[0][0])
    return pace * span > max(tolerance, 3 * noise(late)) and pace >= overall / 4


def onset(series: Points) -> int:
    """The first cycle of a rise: the best split of the points into a flat part and a rise or a step.

    The split with the least sum of squares is taken, for a broken line (Hudson, Journal of the American
    Statistical Association, 1966) and for a step.
    """
    points = thinned(series)
    errors = [min(_ramp_error(points, split), _step_error(points, split)) for split in range(len(points) - 1)]
    best = min(range(len(errors)), key=errors.__getitem__, default=0)
    return int(points[min(best + 1, len(points) - 1)][0])


def rises(series: Points) -> int:
    """Number of times that the level exceeded all levels before."""
    highest, count = series[0][1], 0
    for _, level in series[1:]:
        if level > highest:
            highest, count = level, count + 1
    return count


def _ramp_error(points: Points, split: int) -> float:
    start, base = points[split][0], mean(level for _, level in points[: split + 1])
    after = points[split + 1 :]
    weight = sum((cycle - start) ** 2 for cycle, _ in after)
    rate = sum((cycle - start) * (level - base) for cycle, level in after) / weight
    return sum((level - base) ** 2 for _, level in points[: split + 1]) + sum(
        (level - base - rate * (cycle - start)) ** 2 for cycle, level in after
    )


def _step_error(points: Points, split: int) -> float:
    error = 0.0
    for part in (points[: split + 1], points[split + 1 :]):
        middle = mean(level for _, level in part)
        error += sum((level - middle) ** 2 for _, level in part)
    return error
