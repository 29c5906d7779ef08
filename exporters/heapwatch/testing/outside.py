"""Growth that no Python object shows: blocks of malloc, what it keeps of freed memory, child processes."""

from __future__ import annotations

import os
from itertools import pairwise

from heapwatch.explain.series import LevelSeries
from heapwatch.measure.process.memory import malloc_bytes
from heapwatch.measure.process.process_tree import descendants, private_bytes

LEAST_NATIVE_BYTES = 100_000  # a round


class Outside:
    """Levels of the process and of its children, read after each round."""

    def __init__(self) -> None:
        self._in_use = LevelSeries()
        self._kept = LevelSeries()
        self._private = LevelSeries()
        self._children = LevelSeries()
        self._of_children = LevelSeries()

    def read(self, now: float) -> None:
        """Add the present levels; those that this system does not tell are left out."""
        in_use, kept = malloc_bytes()
        private = private_bytes(os.getpid())
        sizes = [size for size in map(private_bytes, descendants(os.getpid())) if size is not None]
        levels = (in_use, kept, private, len(sizes), sum(sizes))
        series = (self._in_use, self._kept, self._private, self._children, self._of_children)
        for one, level in zip(series, levels, strict=True):
            if level is not None:
                one.add(now, level)

    def native(self, since: float) -> float | None:
        """Growth of malloc's blocks in use, in bytes a round; None if there is none."""
        return _rate(self._in_use, since)

    def kept(self, since: float) -> float | None:
        """Growth of freed memory that stays resident, in bytes a round; None if there is none.

        Freed memory alone can have been given back, page by page; resident memory alone can be a large array
        that fills. Both rise where freed pieces lie between others and are not used again. Now and then one
        is, so that a round adds less; none may fall.
        """
        rates = []
        for series in (self._kept, self._private):
            rate = _rate(series, since)
            if rate is None or min(_rises(series, since), default=0.0) <= 0:
                return None
            rates.append(rate)
        return min(rates)

    def children(self, since: float) -> tuple[float, float | None] | None:
        """Growth of the number of child processes in a round, and of their memory; None if there is none."""
        growth = self._children.growth(since)
        if not growth.rising:
            return None
        return growth.per_second, self._of_children.growth(since).per_second or None

    def moved(self, since: float) -> bool:
        """Whether anything has grown in each round since, or processes have been added."""
        levels = [bucket.last for bucket in self._children.since(since)]
        added = bool(levels) and levels[-1] > min(levels)
        return added or self.native(since) is not None or self.kept(since) is not None


def _rate(series: LevelSeries, since: float) -> float | None:
    growth = series.growth(since)
    return growth.per_second if growth.rising and growth.per_second >= LEAST_NATIVE_BYTES else None


def _rises(series: LevelSeries, since: float) -> list[float]:
    levels = [bucket.last for bucket in series.since(since)]
    return [after - before for before, after in pairwise(levels)]
