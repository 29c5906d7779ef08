"""Memory levels of the process every 30 seconds, judged by the definition of the leak rules.

For growth that no object explains there is no other evidence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from heapwatch.analysis.judge import HELD_EVALUATIONS
from heapwatch.analysis.leak import MEMORY, WINDOWS, growth_of
from heapwatch.analysis.process import YOUNG_CYCLES, Process
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import STEP_SECONDS, Values, steps

OWN, RETAINED, VIRTUAL = "own", "retained", "virtual"
_MOST = steps(1.6 * max(WINDOWS))
_JUDGED_SECONDS = 60.0
_LONGEST_GAP = 3 * STEP_SECONDS


class _Moment(NamedTuple):
    time: float
    cycles: int | None
    levels: Mapping[str, float | None]


class LevelHistory:
    """Levels in bytes, by name, every 30 seconds for more than an hour and a half.

    `own` is the private memory of the process. Growth of `retained` (freed memory that the C allocator keeps)
    and a rise without a rise of `virtual` memory are no leak of it. `retained` and each other level but
    `virtual` are also judged by themselves.
    """

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque(maxlen=_MOST)
        self._judged = (-_JUDGED_SECONDS, 0.0)
        self._leaks: dict[str, float] = {}

    def is_due(self, now: float) -> bool:
        """Whether 30 seconds have passed since the levels were last added."""
        return not self._moments or now - self._moments[-1].time >= STEP_SECONDS

    def add(self, now: float, levels: Mapping[str, float | None], cycles: int | None = None) -> None:
        """Add the levels of one moment.

        Args:
            now: monotonic seconds.
            levels: bytes by name; None where a level is unknown.
            cycles: number of cycles ended so far; None if the program reports none.

        """
        if self._moments and now - self._moments[-1].time > _LONGEST_GAP:
            self._moments.clear()  # the process was suspended: levels before that would distort its rate
        self._moments.append(_Moment(now, cycles, levels))

    def leaks(self, settled: float) -> dict[str, float]:
        """Growth in bytes a minute of the levels that leak, counted from the time `settled`."""
        if not self._moments:
            return {}
        latest = self._moments[-1].time
        if latest >= self._judged[0] + _JUDGED_SECONDS or settled != self._judged[1]:
            self._judged, self._leaks = (latest, settled), self._judge(settled)
        return self._leaks

    def _judge(self, settled: float) -> dict[str, float]:
        moments = [moment for moment in self._moments if moment.time >= settled]
        if not moments:
            return {}
        known: dict[str, Values] = {
            name: [moment.levels.get(name) for moment in moments] for name in moments[-1].levels
        }
        # A program that reports no cycles has ended its start-up once it has settled.
        cycles = [float(YOUNG_CYCLES if moment.cycles is None else moment.cycles) for moment in moments]
        process = Process(
            start=[settled] * len(moments),
            time=[moment.time for moment in moments],
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
        for component, judged in growth_of(process, components, len(moments) - HELD_EVALUATIONS).items():
            growth = judged.verdicts[-1]
            if growth is not None:
                found[OWN if component == MEMORY else component.name] = growth
        return found
