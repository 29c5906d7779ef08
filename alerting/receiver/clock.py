"""Time for records and time for durations."""

from __future__ import annotations

import time
from collections.abc import Callable

from heapwatch.receiver.hooks import wall as hooked_wall
from heapwatch.receiver.settings import LONGEST_DURATION


class Clock:
    """Wall time for records; steady time, which no clock jump moves, for durations.

    Steady time runs on the monotonic clock and goes on across restarts: the time the receiver was down is
    taken from the wall clock, but not less than zero nor more than the longest cooldown allowed. A jump can
    therefore end a cooldown, or lengthen it by at most its own length, only while the receiver is down.
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
        """Go on from the last steady and wall seconds that were written down."""
        down = min(max(0.0, self.wall() - wall), LONGEST_DURATION)
        self._offset = steady + down - self._monotonic()

    def steady(self) -> float:
        """Seconds that only go forwards."""
        return self._monotonic() + self._offset
