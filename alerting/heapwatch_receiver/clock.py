"""Wall time for records and steady time for durations."""

from __future__ import annotations

import time
from collections.abc import Callable

from heapwatch_receiver.hooks import wall as hooked_wall
from heapwatch_receiver.settings import LONGEST_DURATION


class Clock:
    """Wall time for records, and steady time for durations, which clock jumps do not change.

    Steady time is the monotonic clock, continued across restarts. The time for which the receiver was down is
    taken from the wall clock, limited to the range from zero to the longest allowed cooldown. So a clock jump
    can shorten or lengthen a cooldown only while the receiver is down, and by no more than its length.
    """

    def __init__(
        self,
        wall: Callable[[], float] = hooked_wall,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.wall = wall
        self._monotonic = monotonic
        self._offset = -monotonic()

    def resume(self, *, steady: float, wall: float) -> None:
        """Continue from the last stored steady and wall seconds."""
        down = min(max(0.0, self.wall() - wall), LONGEST_DURATION)
        self._offset = steady + down - self._monotonic()

    def steady(self) -> float:
        """Steady seconds, which never decrease."""
        return self._monotonic() + self._offset
