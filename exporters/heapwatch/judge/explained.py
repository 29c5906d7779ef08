"""Growth of memory that is no leak: bounded buffers, freed memory that malloc keeps, pages touched late."""

from __future__ import annotations

import math

from heapwatch.judge.measured import Ring, steps

_MINUTES, _FAST_MINUTES = 16, 6
BUFFER_SHARE = 0.25  # error of the measured size of buffers
_TOLERANCE = 1.5  # error of the other two
_KEPT_STEPS = steps(3)  # the lowest reading in that time is what malloc keeps


class ExplainedGrowth:
    """The readings that explain growth of memory, every 30 seconds; a missed one counts as the one before."""

    def __init__(self) -> None:
        self._buffers, self._kept = Ring(steps(_MINUTES) + 1), Ring(steps(_MINUTES) + 1)
        self._retained = Ring(steps(_FAST_MINUTES) + 1)
        self._virtual = Ring(2 * steps(_MINUTES) + 2)

    def add(self, buffer_bytes: float | None, retained: float | None, virtual: float | None) -> None:
        """Add the bytes in bounded buffers, freed memory that malloc keeps, and virtual memory."""
        for ring, value in (
            (self._buffers, buffer_bytes),
            (self._retained, retained),
            (self._virtual, virtual),
        ):
            ring.add(ring.ago(0) if value is None else value)
        self._kept.add(min(self._retained.last(_KEPT_STEPS), default=None))

    def per_minute(self, gains: Ring, *, with_retention: bool = True) -> float:
        """Growth that is explained, for these gains of memory; minus infinity if none is known."""
        parts = []
        if self._buffers.ago(0) is not None:
            parts.append(BUFFER_SHARE * (_risen(self._buffers, _MINUTES) or 0.0))
        if self._retained.ago(0) is not None:
            parts.append(_TOLERANCE * self.retention if with_retention else 0.0)
        if self._virtual.ago(0) is not None:
            touched = (self._touched(gains, minutes) for minutes in (_MINUTES, _FAST_MINUTES))
            parts.append(_TOLERANCE * max(touched))
        return sum(parts) if parts else -math.inf

    @property
    def retention(self) -> float:
        """Growth per minute of the freed memory that malloc keeps."""
        slow, fast = _risen(self._kept, _MINUTES), _risen(self._retained, _FAST_MINUTES)
        return max(slow or 0.0, fast or 0.0, 0.0)

    def _touched(self, gains: Ring, minutes: int) -> float:
        """Growth per minute without growth of virtual memory: the pages belong to an earlier allocation."""
        many = steps(minutes)
        gained = gains.total(many)
        now, both = self._virtual.last(many + 1), self._virtual.last(2 * many + 1)
        before = both[: len(both) - many]
        if gained <= 0 or len(both) <= many:
            return 0.0
        return max(0.0, gained - max(max(now) - max(before), 0.0)) / minutes


def _risen(values: Ring, minutes: int) -> float | None:
    now, then = values.ago(0), values.ago(steps(minutes))
    return None if now is None or then is None else (now - then) / minutes
