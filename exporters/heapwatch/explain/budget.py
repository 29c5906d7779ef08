"""How much time looking at a program may take."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.002
# CPU seconds that may be spent ahead, so that the first minutes see enough; paid back within the hour.
ADVANCE_SECONDS = 1.5
_REPAID_SECONDS = 3600.0
_AHEAD_SHARE = 0.04  # of the time since the beginning, while the advance lasts
_AT_ONCE_SECONDS = 0.02


class Budget:
    """A share of the time, with an advance: an hour costs no more than the share of it."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        share: float = SHARE,
        advance: float = ADVANCE_SECONDS,
    ) -> None:
        self.spent = 0.0
        self._clock = clock
        self._share = share
        self._advance = advance
        self._began = self._credited = clock()
        self._left = advance

    def allows(self) -> bool:
        """Whether there is anything left to spend now."""
        now = self._clock()
        repaid = self._advance / _REPAID_SECONDS if now - self._began < _REPAID_SECONDS else 0.0
        self._left = min(self._advance, self._left + (now - self._credited) * (self._share - repaid))
        self._credited = now
        ahead = self.spent > _AT_ONCE_SECONDS + _AHEAD_SHARE * (now - self._began)
        return self._left > 0 and not ahead

    def charge(self, seconds: float) -> None:
        """Take what was spent off what is left."""
        self.spent += seconds
        self._left -= seconds
