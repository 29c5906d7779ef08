"""An activity of the explainer: what it does, when it is due, and how its cost delays it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from heapwatch.explain.schedule import Schedule


@dataclass(eq=False)
class Activity:
    """Something that the explainer does again and again, in slices of about a millisecond.

    Attributes:
        counted_as: the entry of `Explainer.spent_on` that gets its CPU time.
        interval: returns the seconds between two slices.
        run: does one slice; returns False if there was nothing to do.
        is_wanted: returns whether a slice is of use now.
        longest_pause: the most seconds by which the cost of a slice delays the next.
        due: when the next slice is due, in seconds of the explainer's clock; the first is due at once.

    """

    counted_as: str
    interval: Callable[[Schedule], float]
    run: Callable[[], object]
    is_wanted: Callable[[], bool] = lambda: True
    longest_pause: float = math.inf
    due: float = -math.inf

    def begins(self, now: float, schedule: Schedule) -> bool:
        """Whether a slice is due and wanted now; then the next one is due an interval later."""
        if now < self.due or not self.is_wanted():
            return False
        self.due = now + self.interval(schedule)
        return True

    def pause(self, now: float, seconds: float) -> None:
        """Delay the next slice until so many seconds after now, within the longest pause."""
        self.due = max(self.due, now + min(self.longest_pause, seconds))


def every(seconds: float) -> Callable[[Schedule], float]:
    """An interval that is the same in every schedule."""
    return lambda _: seconds
