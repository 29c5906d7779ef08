"""Wall time for records and steady time for durations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from heapwatch_receiver.settings import LONGEST_DURATION

_offset_file = os.environ.get("HEAPWATCH_RECEIVER_TEST_WALL_OFFSET_FILE")


def _wall() -> float:
    """Seconds since the epoch; the fault tests shift them by the seconds written in a file."""
    return time.time() + (0.0 if _offset_file is None else float(Path(_offset_file).read_text()))


class Clock:
    """Wall time for records, and steady time for durations, which clock jumps do not change.

    Steady time is the monotonic clock, continued across restarts. The time for which the receiver was down is
    taken from the wall clock, limited to the range from zero to the longest allowed cooldown. So a clock jump
    can shorten or lengthen a cooldown only while the receiver is down, and by no more than its length.
    """

    def __init__(
        self,
        wall: Callable[[], float] = _wall,
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
