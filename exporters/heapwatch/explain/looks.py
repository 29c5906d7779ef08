"""Levels of the process at every half minute, judged as the alerting rules judge them.

Growth that no object accounts for is called a leak by the definition of the rules: start-up, caches and
allocators make memory rise for minutes, and slow down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from heapwatch.analysis.judge import HELD_LOOKS
from heapwatch.analysis.leak import MEMORY, WINDOWS, growth_of
from heapwatch.analysis.process import YOUNG_CYCLES, Process
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import STEP_SECONDS, Values, steps

OWN, RETAINED, VIRTUAL = "own", "retained", "virtual"
_MOST = steps(1.6 * max(WINDOWS))
_JUDGED_SECONDS = 60.0
_LONGEST_GAP = 3 * STEP_SECONDS


class _Look(NamedTuple):
    time: float
    cycles: int | None
    levels: Mapping[str, float | None]


class Looks:
    """Levels by name, in bytes, at every half minute of more than an hour and a half.

    `own` is what the process itself holds; of that, growth of `retained` (freed memory that the C allocator
    keeps) and rises that `virtual` memory does not share are no leak. `retained` and every other level are
    also judged by themselves.
    """

    def __init__(self) -> None:
        self._looks: deque[_Look] = deque(maxlen=_MOST)
        self._judged = (-_JUDGED_SECONDS, 0.0)
        self._leaks: dict[str, float] = {}

    def is_due(self, now: float) -> bool:
        """Whether half a minute has passed since the last look."""
        return not self._looks or now - self._looks[-1].time >= STEP_SECONDS

    def add(self, now: float, levels: Mapping[str, float | None], cycles: int | None = None) -> None:
        """Take a look.

        Args:
            now: seconds.
            levels: by name; None where a level is not known.
            cycles: ended so far; None where the program reports none.

        """
        if self._looks and now - self._looks[-1].time > _LONGEST_GAP:
            self._looks.clear()  # the process was stopped: what was before says nothing of its pace
        self._looks.append(_Look(now, cycles, levels))

    def leaks(self, settled: float) -> dict[str, float]:
        """Growth in bytes a minute of the levels that leak, from a time in seconds on."""
        if not self._looks:
            return {}
        asked = (self._looks[-1].time, settled)
        if asked[0] >= self._judged[0] + _JUDGED_SECONDS or settled != self._judged[1]:
            self._judged, self._leaks = asked, self._judge(settled)
        return self._leaks

    def _judge(self, settled: float) -> dict[str, float]:
        looks = [look for look in self._looks if look.time >= settled]
        if not looks:
            return {}
        known: dict[str, Values] = {
            name: [look.levels.get(name) for look in looks] for name in looks[-1].levels
        }
        # A program that reports no cycles is through its start-up when it has settled.
        cycles = [float(YOUNG_CYCLES if look.cycles is None else look.cycles) for look in looks]
        process = Process(
            start=[settled] * len(looks),
            time=[look.time for look in looks],
            cycles=[*cycles],
            virtual=known.get(VIRTUAL),
            retained=known.get(RETAINED),
        )
        components = {
            MEMORY if name == OWN else Component("gpu_memory", name): values
            for name, values in known.items()
            if name != VIRTUAL and (values[-1] or 0.0) > (values[0] or 0.0)
        }
        found: dict[str, float] = {}
        for component, judged in growth_of(process, components, len(looks) - HELD_LOOKS).items():
            growth = judged.verdicts[-1]
            if growth is not None:
                found[OWN if component == MEMORY else component.name] = growth
        return found
