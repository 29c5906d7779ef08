"""How many points of a long run are kept."""

from __future__ import annotations

from heapwatch.recording.points import CYCLES, Point


class Pace:
    """Keeps whole cycles at intervals that grow with the run: all at first, later fewer and fewer.

    What is kept grows with the logarithm of the run's length. While no cycles are counted, the ends of each
    phase, and other points, are kept at such intervals. Points with the largest objects are always kept.

    Args:
        share: the interval, as a share of the time since the first point.

    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began: float | None = None
        self._next: dict[str, float] = {}  # by phase, or for all of a cycle by its unit
        self._cycle: int | None = None
        self._keeps = True

    def keeps(self, point: Point) -> bool:
        """Whether to keep the next point."""
        if self._began is None:
            self._began = point.time
        unit = next((unit for unit in CYCLES if unit in point.progress), "")
        cycle = point.cycle(unit) if unit else None
        if cycle is None or cycle != self._cycle:
            self._cycle = cycle
            paced = unit or point.phase
            self._keeps = point.time >= self._next.get(paced, 0.0)
            if self._keeps:
                self._next[paced] = point.time + self._share * (point.time - self._began)
        return self._keeps or bool(point.large)
