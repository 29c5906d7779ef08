"""Counts what could not be read, and says each distinct failure once."""

from __future__ import annotations

import logging
from collections import Counter

log = logging.getLogger("heapwatch")

_REMEMBERED = 256


class Failures:
    """Failures by collector. Keeps numbers and names, no exceptions: a traceback would hold live objects."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.left_out: dict[str, int] = {}
        self._said: set[tuple[str, str, str]] = set()

    def record(self, collector: str, what: str, error: BaseException) -> None:
        """Count a failure to read `what` and log it, once for each kind of error."""
        self.counts[collector] += 1
        self._say_once(
            (collector, what, type(error).__name__),
            f"{collector}: {what}: {describe(error)}; what it feeds is left out until it can be read",
        )

    def record_left_out(self, collector: str, names: int) -> None:
        """Note how many names of a collector have no series of their own because there are too many."""
        self.left_out[collector] = names
        if names:
            self._say_once(
                (collector, "", "left out"),
                f"{collector}: too many names; some are added up as 'other' or left out",
            )

    def _say_once(self, key: tuple[str, str, str], message: str) -> None:
        if key in self._said or len(self._said) >= _REMEMBERED:
            return
        self._said.add(key)
        log.warning("%s", message)
        if len(self._said) == _REMEMBERED:
            log.warning("%d kinds of failure logged, others are only counted", _REMEMBERED)


def describe(error: BaseException) -> str:
    """One line for an error whose own `__str__` may fail."""
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:
        text = "(no message)"
    return f"{type(error).__name__}: {text}"
