"""Samples at any times, read at evaluations: every 30 seconds, as Prometheus evaluates rules.

All functions are pure functions over lists with one value for each evaluation.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

STEP_SECONDS = 30.0
LOOKBACK_SECONDS = 300.0  # longest age of a sample, as in Prometheus

Samples = Sequence[tuple[float, float]]  # (seconds, value) at rising times
Values = list[float | None]  # one for each evaluation; None if unknown


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
