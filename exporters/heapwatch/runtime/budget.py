"""The cost of samples, and how often each may be taken within a share of the time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

# A sample's cost is spread over so many that follow it: one that was dear delays each of them a little, not
# the next one for minutes. Until there are `_FIRST` of them, the missing ones count as free.
_SPREAD = 16
_FIRST = 4
# Share of wall time that one sampler may keep training waiting beyond the CPU time that it uses, such as for
# a lock or a disk. The lesser of the last two waits counts: one may have been caused by machine load.
_WAITING_SHARE = 0.02


class Costs:
    """The newest costs of one sampler, in seconds."""

    def __init__(self) -> None:
        self._cpu: deque[float] = deque(maxlen=_SPREAD)
        self._waits: deque[float] = deque(maxlen=2)

    def add(self, cpu: float, wall: float) -> None:
        """Note one sample: CPU seconds of its thread, and seconds that training stood still."""
        self._cpu.append(cpu)
        self._waits.append(max(0.0, wall - cpu))

    @property
    def mean(self) -> float:
        """CPU seconds of one sample, balanced over the newest."""
        return sum(self._cpu) / max(len(self._cpu), _FIRST)

    def interval(self, share: float) -> float:
        """Seconds between samples that keep to `share` of the time in CPU seconds."""
        waited = min(self._waits) if len(self._waits) == 2 else 0.0
        return max(self.mean / share, waited / _WAITING_SHARE)


def fair_share(budget: float, wanted: Iterable[float]) -> float:
    """The largest share that one sampler may take, after those that need less get what they need.

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
