"""Limits of the explainer: when it works, its CPU time, how long it stops the program, what it logs."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

from heapwatch.explain.findings import Explanation, headline, message
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.verdict import SERIOUS
from heapwatch.measure.process.own_time import own_time

_HURRIED_SECONDS = 120.0  # after the start
_RECENT_SECONDS = 120.0
_HURRY = 1 / 6  # growth that is material in ten minutes or fills the memory in four hours


class Schedule(NamedTuple):
    """Seconds between two slices, evaluations, weighings, readings of what changes, and walks."""

    tick: float
    judge: float
    weigh: float
    reading: float
    walk: float


HURRIED = Schedule(tick=0.2, judge=5.0, weigh=5.0, reading=1.0, walk=15.0)
CALM = Schedule(tick=1.0, judge=20.0, weigh=20.0, reading=5.0, walk=120.0)


def schedule_for(levels: MemoryGrowth, rounds: int, filling: float = 0.0) -> Schedule:
    """The schedule for the growth so far, after so many complete walks.

    The growth of the last minutes counts as well as that since the start: a leak may begin after hours. What
    fills up to a bound that fits, in bytes a minute, is no reason to hurry.
    """
    if not rounds or levels.now - levels.began < _HURRIED_SECONDS:
        return HURRIED
    fastest = max(levels.per_minute, levels.recent_per_minute(_RECENT_SECONDS))
    return HURRIED if levels.matters(_HURRY * (fastest - filling)) else CALM


SHARE = 0.002
START_SECONDS = 0.15  # CPU time in advance at the start of any run, so that the first minute has results
ADVANCE_SECONDS = 0.4  # CPU time in advance, once, for growth without an explanation
_REPAID_SECONDS = 3600.0
_AT_ONCE_SECONDS = 0.04
_AHEAD_SHARE = 0.004  # largest share of the time since the start, while the time in advance lasts


class Budget:
    """A share of the time, a part of it in advance. Over an hour it is never more than that share.

    Args:
        clock: monotonic seconds.
        share: largest share of the time. Below the usual one, the time in advance is smaller in proportion.

    Attributes:
        spent: CPU seconds used so far.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, share: float = SHARE) -> None:
        self.spent = 0.0
        self._clock = clock
        self._share = share
        self._began = self._credited = clock()
        self._scale = min(1.0, share / SHARE)
        self._start = self._ahead = self._left = START_SECONDS * self._scale
        self._advance = ADVANCE_SECONDS * self._scale
        self._advanced_at: float | None = None

    @property
    def has_advanced(self) -> bool:
        """Whether CPU time was given in advance and a part of it is left."""
        return self._advanced_at is not None and self._left > self._start

    def advance(self) -> None:
        """Give CPU time in advance, once: there is growth without an explanation."""
        if self._advanced_at is None:
            self._advanced_at = self._clock()
            self._ahead += self._advance
            self._left += self._advance

    def allows(self) -> bool:
        """Whether any time is left now."""
        now = self._clock()
        repaid = self._start / _REPAID_SECONDS if now - self._began < _REPAID_SECONDS else 0.0
        if self._advanced_at is not None and now - self._advanced_at < _REPAID_SECONDS:
            repaid += self._advance / _REPAID_SECONDS
        self._left = min(self._ahead, self._left + (now - self._credited) * (self._share - repaid))
        self._credited = now
        at_most = self._scale * (_AT_ONCE_SECONDS + _AHEAD_SHARE * (now - self._began))
        if self._advanced_at is not None:
            at_most += self._advance
        return self._left > 0 and self.spent <= at_most

    def charge(self, seconds: float) -> None:
        """Subtract used CPU seconds."""
        self.spent += seconds
        self._left -= seconds


T = TypeVar("T")
What = Literal["types", "objects"]  # what a list of all tracked objects is made for

# For which a list of all objects may stop the program. A full collection of such a heap takes longer.
PAUSE_SECONDS = 0.05
# Before a list was made: seconds for each block of memory that Python has allocated. In processes that have
# imported torch a third of the blocks are tracked objects.
_FIRST_RATE = 25e-9
_OBJECTS_TO_TYPES = 1.7  # time of a list of objects, as a multiple of one of types
_YOUNG_RATE = 150e-9  # seconds for each object of the youngest generation


class PauseLimit:
    """Predicts how long lists of objects stop the program, each from the time of those before.

    Attributes:
        allowed: longest time in seconds.
        longest: CPU seconds that the longest call took.

    """

    def __init__(self, allowed: float = PAUSE_SECONDS) -> None:
        self.allowed = allowed
        self.longest = 0.0
        self._rate: dict[What, float] = {}

    def predicted(self, what: What) -> float:
        """Seconds for which a list of all tracked objects would stop the program."""
        rate = self._rate.get(what)
        if rate is None:
            rate = self._rate.get("types", _FIRST_RATE) * (_OBJECTS_TO_TYPES if what == "objects" else 1.0)
        return sys.getallocatedblocks() * rate

    def allows(self, what: What) -> bool:
        """Whether all tracked objects may be listed now."""
        return self.predicted(what) <= self.allowed

    def allows_young(self) -> bool:
        """Whether the youngest generation may be listed, by the number of its objects."""
        return gc.get_count()[0] * _YOUNG_RATE <= self.allowed

    def timed(self, call: Callable[[], list[T]], what: What | None = None) -> list[T]:
        """What `call` returns. With `what` it lists all tracked objects: that predicts the next time."""
        began = own_time()  # CPU time: waiting for a processor does not count
        result = call()
        took = own_time() - began
        self.longest = max(self.longest, took)
        if what is not None:
            rate = took / max(1, sys.getallocatedblocks())
            self._rate[what] = 0.5 * (self._rate.get(what, rate) + rate)
        return result


_HOLDS_SECONDS = 60.0
_REPEATED_SECONDS = 3600.0
_MOST = 100
_COMFORT = ("healthy", "warm-up")


class Line(NamedTuple):
    """A line of the log and its level."""

    level: int
    text: str


class LogLimit:
    """Limits log lines: a state is logged once it has lasted for a minute, and at most once an hour.

    That nothing leaks is logged only to take a warning back.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._logged: dict[str, float] = {}
        self._warned = False

    def line(self, explanation: Explanation, now: float) -> Line | None:
        """The line about an explanation at a time in seconds, if one is due; it counts as logged then."""
        states = _states(explanation)
        self._since = {state: self._since.get(state, now) for state in states}
        first, verdict = states[0], explanation.verdict
        if verdict == "too early" or now - self._since[first] < _HOLDS_SECONDS:
            return None
        if self._warned and verdict not in SERIOUS:
            self._warned = False
            self._logged = {first: now}
            return Line(
                logging.WARNING, f"{verdict}: what was said before is taken back. {message(explanation)}"
            )
        if verdict in _COMFORT or now - self._logged.get(first, float("-inf")) < _REPEATED_SECONDS:
            return None
        if len(self._logged) >= _MOST:
            self._logged.clear()
        self._logged[first] = now
        self._warned = verdict in SERIOUS
        return Line(logging.WARNING if self._warned else logging.INFO, headline(explanation))


def _states(explanation: Explanation) -> list[str]:
    """The states that last: each leak, the most important first; without a leak, the verdict alone."""
    leaks = [finding for finding in explanation.findings if finding.is_leak]
    return [f"leak {finding.path or finding.type}" for finding in leaks] or [explanation.verdict]
