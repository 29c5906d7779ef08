"""Groups the points of a recorded run by generation, epoch or episode; without these, by minute."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from heapwatch.recording.points import CYCLES, Point, Run
from heapwatch.report.since import Points

_FEWEST_CYCLES = 2  # completed cycles of a unit; with fewer, minutes are used


class Cycles:
    """A run's points by cycle of the largest unit with at least two completed cycles, else by minute.

    One completed cycle of `wanted_unit` is enough.
    """

    def __init__(self, run: Run, wanted_unit: str = "") -> None:
        self.points = _with_counts_at_ends(run.points)
        first, last = run.points[0].progress, run.points[-1].progress
        counts = {unit: last[unit] - first.get(unit, 0.0) for unit in CYCLES if unit in last}
        self.unit = next(
            (
                unit
                for unit, count in counts.items()
                if count >= (1 if unit == wanted_unit else _FEWEST_CYCLES)
            ),
            "minute",
        )
        self._began = run.points[0].time
        self._has_cycles = self.unit != "minute"
        by_cycle: dict[int, list[Point]] = defaultdict(list)
        for point in self.points:
            by_cycle[self.number(point)].append(point)
        self._by_cycle = dict(sorted(by_cycle.items()))
        # The duration of one cycle: several cycles may lie between two points.
        duration = self.seconds_at(run.points[-1])
        self.seconds = duration / max(1, max(by_cycle) - min(by_cycle)) if self._has_cycles else 60.0
        self._drop_unfinished()

    def number(self, point: Point) -> int:
        """The cycle of a point; the first point is before the first minute."""
        return point.cycle(self.unit) if self._has_cycles else math.ceil(self.seconds_at(point) / 60)

    def seconds_at(self, point: Point) -> float:
        """The seconds from the first point to this one."""
        return point.time - self._began

    def series(self, read: Callable[[Point], float | None], *, of_class: str = "") -> Points:
        """The level at the end of each cycle, when temporary memory has been freed.

        With `of_class`, omits cycles in which this class was not counted, except the first, which is the
        baseline. The last minute may be incomplete.
        """
        series: list[tuple[float, float]] = []
        began = float("-inf")
        for number, points in self._by_cycle.items():
            values = [
                value
                for point in points
                if not (of_class and series) or point.is_counted_since(began, of_class)
                if (value := read(point)) is not None
            ]
            began = points[-1].time
            if values:
                position = float(number) if self._has_cycles else self.seconds_at(points[-1]) / 60
                series.append((position, values[-1]))
        return series

    def names(self, field: str) -> list[str]:
        """The names in a field of the points, in order of first appearance."""
        points = (point for cycle in self._by_cycle.values() for point in cycle)
        return list(dict.fromkeys(name for point in points for name in getattr(point, field)))

    def growth_since(self, number: int) -> float:
        """Median growth of the process from this cycle on, in bytes per cycle, without bounded buffers."""
        levels = self.series(lambda point: point.resident_bytes - point.bounded_bytes)
        rates = [
            (level - low) / (cycle - start)
            for (start, low), (cycle, level) in pairwise(levels)
            if math.ceil(cycle) >= number
        ]
        return median(rates) if rates else 0.0

    def unbroken_since(self, holds: Callable[[Point], object]) -> int:
        """The first cycle from which a condition holds at every point up to the last."""
        start = self.number(self.points[-1])
        for point in reversed(self.points):
            if not holds(point):
                break
            start = self.number(point)
        return start

    def _drop_unfinished(self) -> None:
        """Drop the last cycle if it has fewer points than the previous one and enough cycles remain.

        A cycle that the progress counter reports as complete stays: a busy machine may have skipped points.
        """
        numbers, last = list(self._by_cycle), self.points[-1]
        if self._has_cycles and last.progress.get(self.unit) == numbers[-1]:
            return
        if len(numbers) > 3 and len(self._by_cycle[numbers[-1]]) < len(self._by_cycle[numbers[-2]]):
            del self._by_cycle[numbers[-1]]


def _with_counts_at_ends(points: Sequence[Point]) -> tuple[Point, ...]:
    """Copy the object counts of a checkpoint to the end of the phase just before it."""
    merged: list[Point] = []
    for point in points:
        previous = merged[-1] if merged else point
        if point.event == "checkpoint" and previous.event == "phase" and previous.phase == point.phase:
            counted_at = {name: min(time, previous.time) for name, time in point.counted_at.items()}
            merged[-1] = replace(previous, objects=point.objects, counted_at=counted_at)
        merged.append(point)
    return tuple(merged)


def reader(field: str, name: str) -> Callable[[Point], float | None]:
    """A function that reads one entry of a mapping field of a point."""
    return lambda point: getattr(point, field).get(name)
