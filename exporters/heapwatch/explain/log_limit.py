"""Decides when an explanation is logged."""

from __future__ import annotations

from heapwatch.explain.findings import Explanation

_HOLDS_SECONDS = 60.0
_REPEATED_SECONDS = 3600.0
_MOST = 100


class LogLimit:
    """Limits log lines: a state is logged once it has lasted for a minute, and at most once an hour."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._logged: dict[str, float] = {}

    def allows(self, explanation: Explanation, now: float) -> bool:
        """Whether to log an explanation at a time in seconds; it counts as logged then."""
        states = _states(explanation)
        self._since = {state: self._since.get(state, now) for state in states}
        first = states[0]
        if explanation.verdict == "too early" or now - self._since[first] < _HOLDS_SECONDS:
            return False
        if now - self._logged.get(first, float("-inf")) < _REPEATED_SECONDS:
            return False
        if len(self._logged) >= _MOST:
            self._logged.clear()
        self._logged[first] = now
        return True


def _states(explanation: Explanation) -> list[str]:
    """The states that last: each leak, the most important first; without a leak, the verdict alone."""
    leaks = [found for found in explanation.findings if found.is_leak]
    return [f"leak {found.path or found.type}" for found in leaks] or [explanation.verdict]
