"""Growth per minute of levels over the last ten minutes, for display and for limits of growth."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from statistics import median
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
MIN_POINTS = 5  # of a growth rate


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
