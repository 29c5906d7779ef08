"""A level that is only measured: what it keeps, and whether that grows in a window of minutes.

What a trainer keeps is the level below which it does not fall. Its high-water mark does not move under swings
that occurred before: phases, episodes, garbage collections. Warm-ups, steps and leaks raise it, and only a
leak raises it evenly.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import pairwise

from heapwatch.judge.component import BYTES, Component, material
from heapwatch.judge.growth import MEASURED, lasts

STEP_SECONDS = 30.0  # between two readings
LOST_STEPS = 20  # after so many steps without a reading, what was known is no longer valid
WINDOWS = (8, 16, 48)  # minutes
EARLIER_MINUTES = 24  # how long ago the mark was that a rise is compared with
_HELD = 2  # number of readings whose lowest value is the level that is kept
_BURST = 5  # steps of one burst: a step of the level is spread over as many marks
FAST_MINUTES, FAST_STEPS, _FAST_LEAST = 6, 12, 11  # readings in that time, and the least that are known
_FAST_SHARE = 0.01  # least growth per minute, as a share of the level
# Least R squared of a straight line, and limits of the slope of the second half over that of the first.
_STRAIGHT, _STEEP = 0.99, (0.85, 1.5)
_YOUNG_STRAIGHT, _YOUNG_STEEP = 0.998, (0.96, 1.2)
# The same of a young process that counts no steps. Its steps may vary, and a leak follows them.
_UNCOUNTED_STRAIGHT, _UNCOUNTED_STEEP = 0.995, (0.93, 1.2)
_FAST_CHANGES, _FAST_HALVES = 9, (0.8, 1.35)  # of a count


def steps(minutes: float) -> int:
    """Number of readings in this many minutes."""
    return round(minutes * 60 / STEP_SECONDS)


_MOST = steps(1.5 * max(WINDOWS))


class Ring:
    """The last values of a series of readings; NaN where nothing was read."""

    __slots__ = ("_most", "_values")

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._values = array("d")

    def add(self, value: float | None) -> None:
        """Add a value; much older ones are dropped."""
        self._values.append(math.nan if value is None else value)
        if len(self._values) > 2 * self._most:
            del self._values[: -self._most]

    def last(self, many: int) -> list[float]:
        """The last values that are known, at most `many`."""
        return [value for value in self._values[-many:] if not math.isnan(value)]

    def raw(self, many: int) -> array[float]:
        """The last values, at most `many`, with NaN."""
        return self._values[-many:]

    def ago(self, many: int) -> float | None:
        """The value `many` steps before the last; None if it is unknown."""
        if len(self._values) <= many or math.isnan(self._values[-1 - many]):
            return None
        return self._values[-1 - many]

    def total(self, many: int, until: int = 0) -> float:
        """Sum of `many` values that end `until` steps before the last."""
        return sum(self._values[-many - until : len(self._values) - until])


class MeasuredLevel:
    """A level every 30 seconds, over one and a half of the longest window."""

    __slots__ = ("_bursts", "_mark", "_seen", "gains", "levels", "marks")

    def __init__(self) -> None:
        self.levels = Ring(steps(max(WINDOWS)))
        self.marks = Ring(steps(EARLIER_MINUTES) + 1)
        self.gains = Ring()
        self._bursts = Ring(steps(max(WINDOWS)))
        self._mark: float | None = None
        self._seen = 0  # steps since the last reading

    def add(self, level: float | None, *, reset: bool = False) -> None:
        """Add a reading, None where there is none; after a `reset` the mark begins anew."""
        self.levels.add(level)
        held = min(self.levels.last(_HELD), default=None)
        if reset or self._seen > LOST_STEPS:
            self._mark = None
        gain = 0.0
        if held is not None:
            risen = held if self._mark is None else max(self._mark, held)
            if self._mark is not None and self._seen <= 1 and not reset:
                gain = risen - self._mark
            self._mark, self._seen = risen, 0
        else:
            self._seen += 1
        self.marks.add(None if held is None else self._mark)
        self.gains.add(gain)
        self._bursts.add(self.gains.total(_BURST))

    @property
    def is_lost(self) -> bool:
        """Whether it has not been read for ten minutes."""
        return self._seen > LOST_STEPS

    @property
    def mark(self) -> float | None:
        """The high-water mark of the level that is kept; None if nothing was read last."""
        return self.marks.ago(0)

    def in_window(self, component: Component, minutes: int) -> float | None:
        """Growth per minute if it is lasting in a window."""
        many = steps(minutes)
        gained, earlier = self.gains.total(many), self.marks.ago(steps(EARLIER_MINUTES))
        if gained <= 0 or earlier is None or gained <= material(component, earlier):
            return None
        quarter = many // 4
        quarters = [self.gains.total(quarter, quarter * before) for before in (3, 2, 1, 0)]
        burst = max(self._bursts.raw(many - _BURST + 1))
        before = self.gains.total(many // 2, many)
        _, straight = _line([*enumerate(self.levels.last(many))])
        lasting = lasts(quarters, MEASURED, largest_step=burst, earlier=before, straight=straight)
        return gained / minutes if lasting else None

    def fast(
        self, component: Component, progress: Ring, speed: float | None, *, mature: bool
    ) -> float | None:
        """Growth per minute that six minutes suffice for: more than 1 % a minute, along a straight line.

        Args:
            component: what it is a level of.
            progress: steps of the program at the same times.
            speed: steps in the last three minutes over steps in the three before; None without steps.
            mature: whether the process is past its warm-up.

        """
        now, gained = self.levels.ago(0), self.gains.total(FAST_STEPS)
        if gained <= 0 or now is None:
            return None
        if component.resource in BYTES:
            if gained <= material(component, now):
                return None
            least, limits = _STRAIGHT, _STEEP
            if not mature:
                counts = progress.ago(0) is not None
                least = _YOUNG_STRAIGHT if counts else _UNCOUNTED_STRAIGHT
                limits = _YOUNG_STEEP if counts else _UNCOUNTED_STEEP
            steepness = self._straight(progress, now, least)
        else:
            mark = self.marks.ago(FAST_STEPS)
            if mark is None or gained <= material(component, mark):
                return None
            limits, steepness = _FAST_HALVES, self._at_every_reading()
        if steepness is None:
            return None
        # Even growth in time or per step: a trainer that slows down also leaks more slowly.
        ratios = (steepness, steepness / (speed or 1.0))
        return gained / FAST_MINUTES if any(limits[0] < ratio < limits[1] for ratio in ratios) else None

    def _straight(self, progress: Ring, now: float, least: float) -> float | None:
        """Slope of the last three minutes over that of the three before; None unless all lie on a steep line.

        The line is one in time or one over the steps taken: a trainer that collects and updates in turns
        leaks in turns.
        """
        seen = [(at, level) for at, level in enumerate(self.levels.raw(FAST_STEPS)) if not math.isnan(level)]
        if len(seen) < _FAST_LEAST:
            return None
        half = FAST_STEPS // 2
        rise, straightness = _line(seen)
        early, _ = _line([pair for pair in seen if pair[0] < half])
        late, _ = _line([pair for pair in seen if pair[0] >= half])
        taken = progress.raw(FAST_STEPS)
        if len(seen) == len(taken) == FAST_STEPS and not any(map(math.isnan, taken)):
            straightness = max(straightness, _line([(taken[at], level) for at, level in seen])[1])
        steep = rise * steps(1) > _FAST_SHARE * now
        return late / early if early > 0 and late and steep and straightness > least else None

    def _at_every_reading(self) -> float | None:
        """Rise of the second half over that of the first; None unless a count changed almost every time."""
        seen = self.levels.last(FAST_STEPS)
        rises = [later - earlier for earlier, later in pairwise(seen)]
        if len(seen) < FAST_STEPS or sum(rise != 0 for rise in rises) < _FAST_CHANGES or min(rises) < 0:
            return None
        first = seen[5] - seen[0]
        return (seen[-1] - seen[-6]) / first if first > 0 else None


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least-squares slope of (x, y), and R squared; zeros where they do not vary."""
    many = len(points)
    if many < 2:
        return 0.0, 0.0
    middle, mean = sum(x for x, _ in points) / many, sum(y for _, y in points) / many
    width = sum((x - middle) ** 2 for x, _ in points)
    height = sum((y - mean) ** 2 for _, y in points)
    together = sum((x - middle) * (y - mean) for x, y in points)
    return (together / width, together**2 / (width * height)) if width and height else (0.0, 0.0)
