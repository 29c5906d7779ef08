"""Counts what could not be read, and says each distinct failure once."""

from __future__ import annotations

import logging
from collections import Counter

log = logging.getLogger("heapwatch")

_REMEMBERED = 256


class Failures:
    """Failures by collector. Keeps numbers and names, never exceptions: a traceback would hold live objects."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._said: set[tuple[str, str, str]] = set()

    def record(self, collector: str, what: str, error: BaseException) -> None:
        """Count a failure to read ``what`` and log it, once for each kind of error."""
        self.counts[collector] += 1
        key = (collector, what, type(error).__name__)
        if key in self._said or len(self._said) >= _REMEMBERED:
            return
        self._said.add(key)
        log.warning("%s: %s: %s; its series are left out until it can be read", collector, what, describe(error))
        if len(self._said) == _REMEMBERED:
            log.warning("%d kinds of failure logged, the others are only counted", _REMEMBERED)


def describe(error: BaseException) -> str:
    """One line for an error whose own ``__str__`` may fail."""
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:
        text = "(no message)"
    return f"{type(error).__name__}: {text}"
