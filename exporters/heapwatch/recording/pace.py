"""How many points of a long run are kept."""

from __future__ import annotations

from heapwatch.recording.points import CYCLES, Point


class Pace:
    """Keeps whole cycles at intervals that grow with the run: all at first, later fewer and fewer.

    What is kept grows with the logarithm of the run's length. If no cycles are counted, single points are
    kept or not. Points with the largest objects are always kept.

    Args:
        share: the interval, as a share of the time since the first point.

    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began: float | None = None
        self._next = 0.0
        self._cycle: int | None = None
        self._keeps = True

    def keeps(self, point: Point) -> bool:
        """Whether to keep the next point."""
        if self._began is None:
            self._began = point.time
        unit = next((unit for unit in CYCLES if unit in point.progress), None)
        cycle = None if unit is None else point.cycle(unit)
        if cycle is None or cycle != self._cycle:
            self._cycle = cycle
            self._keeps = point.time >= self._next
            if self._keeps:
                self._next = point.time + self._share * (point.time - self._began)
        return self._keeps or bool(point.large)
