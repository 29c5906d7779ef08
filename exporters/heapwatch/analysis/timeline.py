"""Levels over time: at evaluations every 30 seconds, as Prometheus evaluates rules, and their growth rates.

Its functions are pure functions over lists, most with one value for each evaluation; `GrowthRates` keeps
samples.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import Generic, TypeVar

STEP_SECONDS = 30.0
LOOKBACK_SECONDS = 300.0  # longest age of a sample, as in Prometheus

Samples = Sequence[tuple[float, float]]  # (seconds, value) at rising times
Values = list[float | None]  # one for each evaluation; None if unknown
Key = TypeVar("Key", bound=Hashable)

MIN_POINTS = 5  # of a growth rate


def steps(minutes: float) -> int:
    """Number of evaluations in this many minutes."""
    return round(minutes * 60 / STEP_SECONDS)


def evaluations(samples: Samples, start: float, many: int) -> Values:
    """The newest value of the last five minutes, at each of `many` evaluations from `start` (seconds) on."""
    values: Values = []
    newest = -1
    for index in range(many):
        now = start + index * STEP_SECONDS
        while newest + 1 < len(samples) and samples[newest + 1][0] <= now:
            newest += 1
        known = newest >= 0 and now - samples[newest][0] <= LOOKBACK_SECONDS
        value = samples[newest][1] if known else math.nan
        values.append(None if math.isnan(value) else value)
    return values


def at(values: Values, index: int) -> float | None:
    """The value of an evaluation; None before the first."""
    return values[index] if index >= 0 else None


def before(values: Values, many: int) -> Values:
    """For each evaluation, the value `many` evaluations before it."""
    return [None] * min(many, len(values)) + values[: max(0, len(values) - many)]


def bridged(values: Values, many: int) -> Values:
    """The newest known value of the last `many` evaluations."""
    newest, known = -many, None
    filled: Values = []
    for index, value in enumerate(values):
        if value is not None:
            newest, known = index, value
        filled.append(known if index - newest < many else None)
    return filled


def lowest(values: Values, many: int) -> Values:
    """The lowest known value of the last `many` evaluations."""
    return _extreme(values, many, lambda left, right: left <= right)


def highest(values: Values, many: int) -> Values:
    """The highest known value of the last `many` evaluations."""
    return _extreme(values, many, lambda left, right: left >= right)


def _extreme(values: Values, many: int, wins: Callable[[float, float], bool]) -> Values:
    candidates: deque[tuple[int, float]] = deque()
    found: Values = []
    for index, value in enumerate(values):
        if value is not None:
            while candidates and wins(value, candidates[-1][1]):
                candidates.pop()
            candidates.append((index, value))
        while candidates and candidates[0][0] <= index - many:
            candidates.popleft()
        found.append(candidates[0][1] if candidates else None)
    return found


class Sums:
    """Prefix sums: the sum over any range of evaluations is one subtraction."""

    def __init__(self, values: Sequence[float]) -> None:
        self._until = list(accumulate(values, initial=0.0))

    def over(self, many: int, index: int) -> float:
        """The sum of the `many` values that end at `index`."""
        if index < 0:
            return 0.0
        return self._until[index + 1] - self._until[max(0, index + 1 - many)]


def slope(values: Sequence[float | None]) -> float | None:
    """Least-squares slope per evaluation; None for fewer than two known values."""
    known = [(float(index), value) for index, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    mean_index = sum(index for index, _ in known) / len(known)
    mean_value = sum(value for _, value in known) / len(known)
    spread = sum((index - mean_index) ** 2 for index, _ in known)
    return sum((index - mean_index) * (value - mean_value) for index, value in known) / spread


def variance(values: Sequence[float | None]) -> float:
    """The population variance of the known values; 0 without any."""
    known = [value for value in values if value is not None]
    return covariance(known, known)


def covariance(left: Sequence[float], right: Sequence[float]) -> float:
    """The population covariance of two series of one length; 0 if they are empty."""
    if not left:
        return 0.0
    mean_left, mean_right = sum(left) / len(left), sum(right) / len(right)
    products = ((one - mean_left) * (other - mean_right) for one, other in zip(left, right, strict=True))
    return sum(products) / len(left)


class GrowthRates(Generic[Key]):
    """A bounded history of levels by key, thinned to `max_points` evenly spaced over the window.

    Args:
        window_seconds: how far back a growth rate looks.
        min_span_seconds: no rate before the samples of a key span this long.
        max_points: points kept a key; a rate costs max_points² / 2 slopes.

    """

    def __init__(
        self, window_seconds: float = 600.0, min_span_seconds: float = 60.0, max_points: int = 30
    ) -> None:
        self._window = window_seconds
        self._min_span = min_span_seconds
        self._spacing = window_seconds / max_points
        self._points: dict[Key, deque[tuple[float, float]]] = {}

    def observe(self, time: float, levels: Mapping[Key, float]) -> None:
        """Add the levels read at `time` (seconds of one clock); drop keys that were absent for a window."""
        for key, level in levels.items():
            points = self._points.setdefault(key, deque())
            if points and time - points[-1][0] < self._spacing:
                continue
            points.append((time, level))
        for key, points in list(self._points.items()):
            while points and points[0][0] < time - self._window:
                points.popleft()
            if not points:
                del self._points[key]

    def clear(self) -> None:
        """Drop all samples, such as after a restart of the process."""
        self._points.clear()

    def per_minute(self, key: Key) -> float | None:
        """Median slope per minute between all pairs of samples; None while there are too few.

        Theil-Sen estimator (Sen, Journal of the American Statistical Association, 1968). A single cleanup or
        spike among the samples does not change it.
        """
        points = list(self._points.get(key, ()))
        if len(points) < MIN_POINTS or points[-1][0] - points[0][0] < self._min_span:
            return None
        return 60.0 * median_slope(points)

    def rise(self, key: Key) -> float | None:
        """Difference between the newest and the oldest sample of the window; None without samples."""
        points = self._points.get(key)
        return points[-1][1] - points[0][1] if points else None


def median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Median slope between all pairs of (time, level): at least two points at rising times."""
    return median(
        (later - earlier) / (end - start)
        for i, (start, earlier) in enumerate(points)
        for end, later in points[i + 1 :]
    )
