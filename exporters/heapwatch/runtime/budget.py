"""The cost of samples, and the interval at which a sampler stays within its share of the time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

# The cost of a sample is spread over this many samples: an expensive one delays each of them a little, and
# not the next one for minutes. Until there are `_FIRST` samples, missing ones count as free.
_SPREAD = 16
_FIRST = 4
# Largest share of wall time for which a sampler may delay training beyond its CPU time, for example with a
# lock or a disk. The shorter of the last two delays counts, since machine load may cause a single one.
_WAITING_SHARE = 0.02
# Half of the share suffices as long as samples still come this often, in seconds. A single expensive sample
# does not count for that.
_FRUGAL_SECONDS = 60.0


class Costs:
    """The newest costs of one sampler, in seconds."""

    def __init__(self) -> None:
        self._cpu: deque[float] = deque(maxlen=_SPREAD)
        self._waits: deque[float] = deque(maxlen=2)

    def add(self, cpu: float, wall: float) -> None:
        """Add one sample: CPU seconds of its thread, and seconds for which training stood still."""
        self._cpu.append(cpu)
        self._waits.append(max(0.0, wall - cpu))

    @property
    def mean(self) -> float:
        """CPU seconds of one sample, averaged over the newest."""
        return sum(self._cpu) / max(len(self._cpu), _FIRST)

    def interval(self, share: float) -> float:
        """Seconds between samples with which their CPU time stays within `share` of the time."""
        waited = min(self._waits) if len(self._waits) == 2 else 0.0
        typical = median(self._cpu) if len(self._cpu) >= _FIRST else 0.0
        frugal = min(_FRUGAL_SECONDS, typical / (share / 2))
        return max(self.mean / share, frugal, waited / _WAITING_SHARE)


def fair_share(budget: float, wanted: Iterable[float]) -> float:
    """The largest share for one sampler, after samplers that need less got what they need.

    Max-min fairness: D. Bertsekas and R. Gallager, Data Networks (1992), section 6.5.2.
    """
    left = budget
    ordered = sorted(wanted)
    for position, share in enumerate(ordered):
        fair = left / (len(ordered) - position)
        if share > fair:
            return fair
        left -= share
    return budget
