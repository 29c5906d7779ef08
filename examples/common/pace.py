"""Keeping a trainer at a steady pace, so that a demonstration leaves the machine usable."""

import time


class Pace:
    """At most so many steps per second; None for no limit."""

    def __init__(self, steps_per_second: float | None) -> None:
        self._seconds = 1 / steps_per_second if steps_per_second else 0.0
        self._next = time.monotonic()

    def wait(self) -> None:
        """Sleep until the next step is due; time lost is not made up for."""
        if not self._seconds:
            return
        now = time.monotonic()
        self._next = max(self._next + self._seconds, now)
        if self._next > now:
            time.sleep(self._next - now)
