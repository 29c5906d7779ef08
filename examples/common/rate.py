"""Keeping a trainer at a steady rate, so that a demonstration leaves the machine usable."""

import time


class Rate:
    """At most so many steps per second; None for no limit."""

    def __init__(self, steps_per_second: float | None) -> None:
        self._seconds = 1 / steps_per_second if steps_per_second else 0.0
        self._next = time.monotonic()
        self._steps = 0

    def clock(self) -> float:
        """Seconds that the steps so far take at this rate, or of the real clock where there is none.

        What is due by this clock comes to the same for an epoch on any machine.
        """
        return self._steps * self._seconds if self._seconds else time.monotonic()

    def wait(self) -> None:
        """Sleep until the next step is due; time lost is not made up for."""
        if not self._seconds:
            return
        self._steps += 1
        now = time.monotonic()
        self._next = max(self._next + self._seconds, now)
        if self._next > now:
            time.sleep(self._next - now)
