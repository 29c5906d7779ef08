"""Growth of levels per minute and per cycle, for display and for limits of growth."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from statistics import median
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
MIN_POINTS = 5  # of a growth rate
_LEAST_ENDS, _ENDS_SECONDS, _END_SECONDS = 4, 600.0, 20.0  # of cycles
_MOST_ENDS = round(_ENDS_SECONDS / _END_SECONDS) + 1


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


class CycleRates(Generic[Key]):
    """The levels after the ends of cycles, such as generations: those of ten minutes, or the last four.

    An end is thinned out that follows another one within 20 seconds.
    """

    def __init__(self) -> None:
        self._count: float | None = None
        self._ends: deque[tuple[float, float, Mapping[Key, float]]] = deque(maxlen=_MOST_ENDS)

    def observe(self, time: float, count: float, levels: Mapping[Key, float]) -> None:
        """Add the levels read at `time` (seconds of one clock), when `count` cycles had ended."""
        known, self._count = self._count, count
        if known is not None and count < known:  # another process
            self._ends.clear()
        if known is None or count <= known or (self._ends and time - self._ends[-1][0] < _END_SECONDS):
            return
        self._ends.append((time, count, levels))
        while len(self._ends) > _LEAST_ENDS and self._ends[0][0] < time - _ENDS_SECONDS:
            self._ends.popleft()

    def per_cycle(self, key: Key) -> float | None:
        """Median growth per cycle between all pairs of ends; None before the fourth end."""
        points = [(count, levels[key]) for _, count, levels in self._ends if key in levels]
        return median_slope(points) if len(points) >= _LEAST_ENDS else None


def median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Median slope between all pairs of (time, level): at least two points at rising times."""
    return median(
        (later - earlier) / (end - start)
        for i, (start, earlier) in enumerate(points)
        for end, later in points[i + 1 :]
    )
