"""The points of a recorded run, by its cycles: generations, epochs or episodes, else minutes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from heapwatch.recording.points import CYCLES, Point, Run
from heapwatch.report.since import Points

_FEWEST_CYCLES = 2  # that end in the record; with fewer of all units, it is divided by minutes


class Cycles:
    """A run's points by cycle of the largest unit of which two or more have ended, else by minute.

    Of the unit `asked` for, one is enough.
    """

    def __init__(self, run: Run, asked: str = "") -> None:
        self.points = _with_counts_at_ends(run.points)
        first, last = run.points[0].progress, run.points[-1].progress
        ended = {unit: last[unit] - first.get(unit, 0.0) for unit in CYCLES if unit in last}
        self.unit = next(
            (unit for unit, many in ended.items() if many >= (1 if unit == asked else _FEWEST_CYCLES)),
            "minute",
        )
        self._began = run.points[0].time
        self._counted = self.unit != "minute"
        by_cycle: dict[int, list[Point]] = defaultdict(list)
        for point in self.points:
            by_cycle[self.number(point)].append(point)
        self._by_cycle = dict(sorted(by_cycle.items()))
        # Of one cycle; several may lie between two points.
        lasted = self.seconds_at(run.points[-1])
        self.seconds = lasted / max(1, max(by_cycle) - min(by_cycle)) if self._counted else 60.0
        self._drop_unfinished()

    def number(self, point: Point) -> int:
        """The cycle of a point; the first point is before the first minute."""
        return point.cycle(self.unit) if self._counted else math.ceil(self.seconds_at(point) / 60)

    def seconds_at(self, point: Point) -> float:
        """The seconds from the first point to this one."""
        return point.time - self._began

    def series(self, read: Callable[[Point], float | None], *, counted: str = "") -> Points:
        """The level at the end of each cycle: temporary memory is freed by then.

        With `counted`, cycles in which this class was not counted are left out; the first is a baseline. The
        last minute may not be a whole one.
        """
        series: list[tuple[float, float]] = []
        began = float("-inf")
        for number, points in self._by_cycle.items():
            known = [
                value
                for point in points
                if not (counted and series) or point.is_counted_since(began, counted)
                if (value := read(point)) is not None
            ]
            began = points[-1].time
            if known:
                at = float(number) if self._counted else self.seconds_at(points[-1]) / 60
                series.append((at, known[-1]))
        return series

    def names(self, field: str) -> list[str]:
        """The names in a field of the points, in the order in which they came."""
        finished = (point for points in self._by_cycle.values() for point in points)
        return list(dict.fromkeys(name for point in finished for name in getattr(point, field)))

    def growth_since(self, number: int) -> float:
        """Growth of the process per cycle from this one on, in bytes, without what bounded buffers take."""
        levels = self.series(lambda point: point.resident_bytes - point.bounded_bytes)
        rises = [
            (level - before) / (cycle - last)
            for (last, before), (cycle, level) in pairwise(levels)
            if math.ceil(cycle) >= number
        ]
        return median(rises) if rises else 0.0

    def unbroken_since(self, holds: Callable[[Point], object]) -> int:
        """The cycle since which something has held at each point until the last."""
        since = self.number(self.points[-1])
        for point in reversed(self.points):
            if not holds(point):
                break
            since = self.number(point)
        return since

    def _drop_unfinished(self) -> None:
        """The last cycle, when it has fewer points than the one before and enough others are left.

        That it has ended is known where cycles are counted: on a busy machine some of its points are missing.
        """
        numbers, last = list(self._by_cycle), self.points[-1]
        if self._counted and last.progress.get(self.unit) == numbers[-1]:
            return
        if len(numbers) > 3 and len(self._by_cycle[numbers[-1]]) < len(self._by_cycle[numbers[-2]]):
            del self._by_cycle[numbers[-1]]


def _with_counts_at_ends(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points; what a checkpoint counted just after a phase was alive at the end of that phase."""
    found: list[Point] = []
    for point in points:
        before = found[-1] if found else point
        if point.event == "checkpoint" and before.event == "phase" and before.phase == point.phase:
            counted_at = {name: min(at, before.time) for name, at in point.counted_at.items()}
            found[-1] = replace(before, objects=point.objects, counted_at=counted_at)
        found.append(point)
    return tuple(found)


def reader(field: str, name: str) -> Callable[[Point], float | None]:
    """Reads an entry of a field of a point."""
    return lambda point: getattr(point, field).get(name)
