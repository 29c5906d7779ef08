"""How long a list of all objects may stop the program, and how long it would."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Literal, TypeVar

from heapwatch.measure.process.own_time import own_time
from heapwatch.runtime.environment import whole_number

T = TypeVar("T")
What = Literal["types", "objects"]  # what a list of all tracked objects is made for

VARIABLE = "HEAPWATCH_STALL_MS"
STALL_SECONDS = 0.02
_LONGEST_MS = 60_000
# Before a list was made: seconds for each block of memory that Python has allocated. In processes that have
# imported torch a third of the blocks are tracked objects.
_FIRST_PACE = 25e-9
_OBJECTS_TO_TYPES = 1.7  # time of a list of objects, as a multiple of one of types
_YOUNG_PACE = 150e-9  # seconds for each object of the young generations


def allowed_seconds() -> float:
    """Seconds for which a list of all objects may stop the program: HEAPWATCH_STALL_MS, or 20 ms."""
    usual = 1000 * STALL_SECONDS
    return whole_number(VARIABLE, usual, _LONGEST_MS, "a whole number of milliseconds") / 1000


class Stall:
    """Predicts how long lists of objects stop the program, each from the time of those before.

    Attributes:
        allowed: longest time in seconds.
        longest: CPU seconds that the longest call took.

    """

    def __init__(self, allowed: float) -> None:
        self.allowed = allowed
        self.longest = 0.0
        self._pace: dict[What, float] = {}

    def predicted(self, what: What) -> float:
        """Seconds for which a list of all tracked objects would stop the program."""
        pace = self._pace.get(what)
        if pace is None:
            pace = self._pace.get("types", _FIRST_PACE) * (_OBJECTS_TO_TYPES if what == "objects" else 1.0)
        return sys.getallocatedblocks() * pace

    def allows(self, what: What) -> bool:
        """Whether all tracked objects may be listed now."""
        return self.predicted(what) <= self.allowed

    def allows_young(self, generation: int) -> bool:
        """Whether generation 0 or 1 may be listed, by the number of objects that it can have."""
        newest, collections, _ = gc.get_count()
        most = newest if generation == 0 else collections * gc.get_threshold()[0]
        return most * _YOUNG_PACE <= self.allowed

    def timed(self, call: Callable[[], list[T]], what: What | None = None) -> list[T]:
        """What `call` returns. With `what` it lists all tracked objects: that predicts the next time."""
        began = own_time()  # CPU time: waiting for a processor does not count
        found = call()
        took = own_time() - began
        self.longest = max(self.longest, took)
        if what is not None:
            pace = took / max(1, sys.getallocatedblocks())
            self._pace[what] = 0.5 * (self._pace.get(what, pace) + pace)
        return found
