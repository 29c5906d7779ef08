"""A level over time in bounded memory, the growth of its floor, and whether growth keeps its rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from heapwatch.judge.growth import COUNTED, lasts

_MOST = 48
_WIDEST_SECONDS = 256.0
_BLOCKS = 4
_MEASURED_SECONDS = 20.0  # least time in which a level that does not rise is one that stands still
_LEAST_STEPS = 4  # changes of a level before it can count as rising
# Least distance of the floor below a straight line, as a share of its rise: it stood still for this share of
# the time, or rose slowly for longer.
_BENT = 0.15


class Bucket(NamedTuple):
    """The readings of an interval: its start and end, the least and the last level, the number of changes."""

    start: float
    end: float
    least: float
    last: float
    changes: int


@dataclass(frozen=True)
class FloorGrowth:
    """How a level rises.

    Attributes:
        per_second: rise of the floor in a second; 0 if it does not rise.
        rising: whether the floor rises in each quarter of the time and does not level off.
        steps: number of changes of the level in that time.
        span: length of that time in seconds.
        total: rise of the floor over that time.
        lasting: rate of the last quarter, as a share of the overall rate.
        floor: of the last quarter; 0 where it does not rise.
        swing: largest difference between the level and the floor of the same quarter.

    """

    per_second: float
    rising: bool
    steps: int
    span: float
    total: float
    lasting: float = 0.0
    floor: float = 0.0
    swing: float = 0.0


NO_GROWTH = FloorGrowth(0.0, False, 0, 0.0, 0.0)


class LevelSeries:
    """The readings of one level over a few hours, in at most a few dozen intervals that get longer with time.

    Older readings are dropped, so a leak that begins on the third day is compared with the hours before it.

    Attributes:
        last: the last level; None before the first reading.
        read_at: when it was read, in seconds.
        changed_at: when the level last changed.
        longest_pause: most seconds between two changes.

    """

    __slots__ = ("_buckets", "_width", "changed_at", "last", "longest_pause", "read_at")

    def __init__(self) -> None:
        self._buckets: list[Bucket] = []
        self._width = 0.5
        self.last: float | None = None
        self.read_at = self.changed_at = float("-inf")
        self.longest_pause = 0.0

    def add(self, time: float, level: float) -> None:
        """Add a reading at a time in seconds, which must not be before the last one."""
        changed = self.last is not None and level != self.last
        self.last, self.read_at = level, time
        if changed:
            if self.changed_at > float("-inf"):
                self.longest_pause = max(self.longest_pause, time - self.changed_at)
            self.changed_at = time
        _append(self._buckets, Bucket(time, time, level, level, int(changed)), self._width)
        if len(self._buckets) > _MOST and self._width >= _WIDEST_SECONDS:
            del self._buckets[0]
        elif len(self._buckets) > _MOST:
            self._width *= 2
            merged: list[Bucket] = []
            for bucket in self._buckets:
                _append(merged, bucket, self._width)
            self._buckets = merged

    def scale(self, factor: float) -> None:
        """Multiply all readings by a factor."""
        self._buckets = [
            bucket._replace(least=factor * bucket.least, last=factor * bucket.last)
            for bucket in self._buckets
        ]
        self.last = None if self.last is None else factor * self.last

    def since(self, start: float) -> list[Bucket]:
        """The intervals that end at `start` or later."""
        return [bucket for bucket in self._buckets if bucket.end >= start]

    def at(self, time: float) -> float | None:
        """The level at a time, by linear interpolation; None outside of the readings."""
        for before, after in pairwise(self._buckets):
            if before.end <= time <= after.end:
                passed = (time - before.end) / ((after.end - before.end) or 1.0)
                return before.last + passed * (after.last - before.last)
        return None

    def new_high(self, since: float) -> float:
        """By how much a second the last level exceeds all that were read until `since`; 0 if it does not."""
        before = [bucket for bucket in self._buckets if bucket.end <= since]
        if not before or self.last is None:
            return 0.0
        risen = self.last - max(bucket.last for bucket in before)
        return max(0.0, risen) / ((self._buckets[-1].end - before[-1].end) or 1.0)

    def rise_began(self, start: float = float("-inf")) -> float:
        """When the level began to rise after it had stood still; `start` if it has risen from then on.

        A level that rises in a few large steps stands still before each, and has risen from the start.
        Otherwise it is where the floor is furthest below the straight line from its first to its last point,
        which for a level that stands still and then rises evenly is the bend.
        """
        floors: list[tuple[float, float]] = []
        for bucket in reversed(self.since(start)):
            floors.append((bucket.start, min(bucket.least, floors[-1][1] if floors else bucket.least)))
        if not floors or floors[0][1] <= floors[-1][1] or self.growth(start).rising:
            return start
        (end, highest), (first, lowest) = floors[0], floors[-1]
        slope = (highest - lowest) / (end - first)
        below, bend = max((lowest + slope * (time - first) - floor, time) for time, floor in floors)
        return bend if below > _BENT * (highest - lowest) else start

    def is_measured(self, start: float) -> bool:
        """Whether there are enough readings from `start` on to tell growth from a level that stands still."""
        known = self.since(start)
        return len(known) > _BLOCKS and known[-1].end - known[0].start >= _MEASURED_SECONDS

    def growth(self, start: float = float("-inf")) -> FloorGrowth:
        """How the level rises from `start` on.

        The time is divided into quarters. The floor of a quarter is its least reading. A container that is
        emptied now and then has a low floor in each quarter; the floor of one that leaks is higher each time.
        The floor of one quarter without readings, on a busy machine, is interpolated.
        """
        if self.changed_at < start:
            return NO_GROWTH
        buckets = self.since(start)
        if len(buckets) < _BLOCKS + 1:
            return NO_GROWTH
        first, end = buckets[0].start, buckets[-1].end
        span = end - first
        if span <= 0:
            return NO_GROWTH
        read: list[tuple[float, float] | None] = []
        swing = 0.0
        steps = sum(bucket.changes for bucket in buckets)
        for block in range(_BLOCKS):
            low, high = first + span * block / _BLOCKS, first + span * (block + 1) / _BLOCKS
            inside = [bucket for bucket in buckets if low <= (bucket.start + bucket.end) / 2 <= high]
            lowest = min(inside, key=lambda bucket: bucket.least, default=None)
            read.append(lowest and ((lowest.start + lowest.end) / 2, lowest.least))
            if lowest is not None:
                swing = max(swing, max(bucket.last for bucket in inside) - lowest.least)
        floors = _bridged(read)
        if floors is None:
            return NO_GROWTH
        rises = [after[1] - before[1] for before, after in pairwise(floors)]
        spans = [after[0] - before[0] for before, after in pairwise(floors)]
        # The rise within the last quarter: its end is no floor, but a fall within the quarter shows in it.
        total = max(0.0, floors[-1][1] - floors[0][1])
        elapsed = floors[-1][0] - floors[0][0]
        if total <= 0 or elapsed <= 0:
            return FloorGrowth(0.0, False, steps, span, 0.0)
        rate = total / elapsed
        late = rises[-1] / spans[-1] if spans[-1] > 0 else 0.0
        tail_time = end - floors[-1][0]
        tail = (buckets[-1].last - floors[-1][1]) / tail_time if tail_time > span / 16 else late
        rising = (
            lasts(rises, COUNTED, seconds=spans)
            and tail >= COUNTED.last_part * rate / 2
            and steps >= _LEAST_STEPS
        )
        lasting = late / rate
        if rising:
            # A single large step, such as loading a data set, must not count as a lasting rate.
            rate = median(rise / max(seconds, span / 16) for rise, seconds in zip(rises, spans, strict=True))
        return FloorGrowth(rate, rising, steps, span, total, lasting, floors[-1][1], swing)


def _append(buckets: list[Bucket], bucket: Bucket, width: float) -> None:
    """Append an interval; it becomes a part of the last one if it begins within `width` seconds of it."""
    if not buckets or bucket.start - buckets[-1].start >= width:
        buckets.append(bucket)
        return
    was = buckets[-1]
    changes = was.changes + bucket.changes
    buckets[-1] = Bucket(was.start, bucket.end, min(was.least, bucket.least), bucket.last, changes)


def _bridged(floors: list[tuple[float, float] | None]) -> list[tuple[float, float]] | None:
    """Times and floors of all quarters; None where more than one inner quarter has none."""
    known = [floor for floor in floors if floor is not None]
    if len(known) == len(floors):
        return known
    gap = floors.index(None)
    if len(known) < len(floors) - 1 or not 0 < gap < len(floors) - 1:
        return None
    (earlier, low), (later, high) = known[gap - 1 : gap + 1]
    return [*known[:gap], ((earlier + later) / 2, (low + high) / 2), *known[gap:]]


STEADY_SECONDS = 200.0  # least time of even growth; the rules wait for three evaluations in addition
_HALVES = (0.92, 1.25)  # limits of the second half's rise over the first's; a filling cache stays below
_COUNT_ERROR = 0.5  # items
_APART_SECONDS = 30.0  # longest time between the last readings of two levels that are compared


def is_steady(level: LevelSeries, progress: Iterable[LevelSeries], start: float) -> bool:
    """Whether a level rose as much in the second half of the time since `start` as in the first half.

    Instead of the time, the halves may also be those of a count of `progress`, such as steps.
    """
    known = level.since(start)
    if not known or known[-1].end - known[0].end < STEADY_SECONDS:
        return False
    first, last = known[0].end, known[-1].end
    if _is_even(rises(level, first, last)):
        return True
    for count in progress:
        until = min(last, count.read_at)  # it is read a moment earlier
        if until < last - _APART_SECONDS:
            continue
        before, after = rises(count, first, until)
        if before > 0 and after > 0 and _is_even(rises(level, first, until), after / before):
            return True
    return False


def _is_even(rises: tuple[float, float], change: float = 1.0) -> bool:
    """Whether the second of two rises is the first one times `change`, within the limits."""
    early, late = rises
    if early <= _COUNT_ERROR:
        return False
    least = (late - _COUNT_ERROR) / (early + _COUNT_ERROR)
    most = (late + _COUNT_ERROR) / (early - _COUNT_ERROR)
    return most / change > _HALVES[0] and least / change < _HALVES[1]


def rises(level: LevelSeries, first: float, last: float) -> tuple[float, float]:
    """The rise of a level in the first and in the second half of a time; zeros if it is unknown."""
    began, middle, end = (level.at(time) for time in (first, (first + last) / 2, last))
    if began is None or middle is None or end is None:
        return 0.0, 0.0
    return middle - began, end - middle
