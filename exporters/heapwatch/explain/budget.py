"""Limits the CPU time of the explainer."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.002
START_SECONDS = 0.15  # CPU time in advance at the start of any run, so that the first minute has results
LOAN_SECONDS = 0.4  # CPU time in advance, once, for growth without an explanation
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
        self._loan = LOAN_SECONDS * self._scale
        self._lent_at: float | None = None

    @property
    def has_lent(self) -> bool:
        """Whether the loan was given and a part of it is left."""
        return self._lent_at is not None and self._left > self._start

    def lend(self) -> None:
        """Give the loan, once: there is growth without an explanation."""
        if self._lent_at is None:
            self._lent_at = self._clock()
            self._ahead += self._loan
            self._left += self._loan

    def allows(self) -> bool:
        """Whether any time is left now."""
        now = self._clock()
        repaid = self._start / _REPAID_SECONDS if now - self._began < _REPAID_SECONDS else 0.0
        if self._lent_at is not None and now - self._lent_at < _REPAID_SECONDS:
            repaid += self._loan / _REPAID_SECONDS
        self._left = min(self._ahead, self._left + (now - self._credited) * (self._share - repaid))
        self._credited = now
        at_most = self._scale * (_AT_ONCE_SECONDS + _AHEAD_SHARE * (now - self._began))
        if self._lent_at is not None:
            at_most += self._loan
        return self._left > 0 and self.spent <= at_most

    def charge(self, seconds: float) -> None:
        """Subtract used CPU seconds."""
        self.spent += seconds
        self._left -= seconds
