"""Decides when an explanation is logged."""

from __future__ import annotations

import logging
from typing import NamedTuple

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.explain.findings import Explanation, headline, message

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
    leaks = [found for found in explanation.findings if found.is_leak]
    return [f"leak {found.path or found.type}" for found in leaks] or [explanation.verdict]
