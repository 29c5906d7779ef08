"""The choice of points that are kept when the file is full."""

from __future__ import annotations

from heapwatch.recording.points import CYCLES, Point


class Thinning:
    """Keeps whole cycles: all at first, then every second one, every fourth, and so on; always the start.

    If no cycles are counted, it keeps every second, fourth, … point.
    """

    def __init__(self) -> None:
        self._stride = 1
        self._points = 0

    def index(self, point: Point) -> int:
        """Index of the next point: the number of its cycle, else its own; 0 is always kept."""
        self._points += 1
        if point.event == "start":
            return 0
        unit = next((unit for unit in CYCLES if unit in point.progress), None)
        return self._points if unit is None else point.cycle(unit)

    def keeps(self, index: int) -> bool:
        """Whether a point of this index is kept."""
        return index % self._stride == 0

    def double(self) -> None:
        """Keep half as many from now on."""
        self._stride *= 2
