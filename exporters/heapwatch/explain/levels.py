"""Levels that leak by the definition of the rules, or rise too fast to call the program healthy, as findings.

And the memory levels that are kept for that.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import NamedTuple

from heapwatch.analysis.judge import HELD_EVALUATIONS, Verdicts
from heapwatch.analysis.leak import BYTES, MEMORY, WINDOWS, growth_of
from heapwatch.analysis.process import YOUNG_CYCLES, Process
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import STEP_SECONDS, Values, steps
from heapwatch.analysis.verdict import Word
from heapwatch.explain.findings import Explanation, Finding, ranked

_PAUSE_SECONDS = 60.0  # between two evaluations, which may take tens of milliseconds
# A count that rose at each of the last evaluations, to its highest, by more than this share of it a minute.
_RISES = 3
_LEAST_SHARE = 0.01
_COUNTED = ("bodies", "entities", "events", "objects")
_JUDGED_MINUTES = 6  # that the rules need for fast growth
_COMFORT: tuple[Word, ...] = ("healthy", "warm-up", "filling")
# The findings of the explainer that speak of the same growth.
_SAME_KINDS = {
    ("memory", "trainer"): ("container", "type", "buffer", "native", "allocator"),
    ("memory", "worker"): ("worker",),
    ("objects", "worker_processes"): ("worker",),
}


class LeakingLevels:
    """What leaks by the rules, found in the process itself.

    Args:
        judge: judges the process's own series.
        clock: monotonic seconds.

    """

    def __init__(self, judge: Callable[[], Verdicts], clock: Callable[[], float] = time.monotonic) -> None:
        self._judge = judge
        self._clock = clock
        self._judged = float("-inf")
        self._found: list[tuple[Component, Finding]] = []
        self._rising: list[Finding] = []
        self._minutes_left = 0

    def beside(self, explanation: Explanation) -> Explanation:
        """Add what leaks and is no finding yet: the verdict speaks of everything that is watched."""
        now = self._clock()
        if now - self._judged >= _PAUSE_SECONDS:
            verdicts = self._judge()
            self._judged, self._found = now, list(_findings(verdicts))
            risen = list(_rising(verdicts))
            self._rising = [found for _, found in risen]
            self._minutes_left = math.ceil(max([1.0, *(_JUDGED_MINUTES - minutes for minutes, _ in risen)]))
        missing = [found for component, found in self._found if not _is_named(component, explanation)]
        if not missing and self._rising and explanation.verdict in _COMFORT:
            detail = f"Whether it goes on can be told in {self._minutes_left} min."
            found = (*self._rising, *explanation.findings)
            return replace(explanation, verdict="too early", detail=detail, findings=found)
        if not missing:
            return explanation
        return replace(explanation, verdict="leak", findings=ranked([*explanation.findings, *missing]))


def _findings(verdicts: Verdicts) -> Iterator[tuple[Component, Finding]]:
    for component, rate in verdicts.leaking().items():
        yield component, _finding(component, verdicts.levels[component][-1], rate)
    for component, items in verdicts.longer_than_allowed().items():
        capacity = verdicts.capacity[component][-1]
        found = _finding(component, items, 0.0)
        yield component, replace(found, capacity_items=None if capacity is None else round(capacity))


def _rising(verdicts: Verdicts) -> Iterator[tuple[float, Finding]]:
    """Counts that rise and have no bound, fastest first, each with the minutes since it began to."""
    found = []
    for component, level in verdicts.levels.items():
        bound = verdicts.capacity.get(component)
        if component.resource not in _COUNTED or (bound and bound[-1] is not None):
            continue
        known = [value for value in level if value is not None]
        rises = len(list(takewhile(lambda pair: pair[0] > pair[1], pairwise(reversed(known)))))
        if not rises or rises < min(_RISES, len(known) - 1) or known[-1] < max(known):
            continue
        minutes = rises * STEP_SECONDS / 60
        rate = (known[-1] - known[-1 - rises]) / minutes
        if rate > _LEAST_SHARE * known[-1]:
            found.append((minutes, replace(_finding(component, known[-1], rate), is_leak=False)))
    return iter(sorted(found, key=lambda one: -(one[1].items_per_minute or 0.0)))


def _finding(component: Component, level: float | None, rate: float) -> Finding:
    held, in_bytes = None if level is None else round(level), component.resource in BYTES
    return Finding(
        kind="level",
        path=None,
        type=str(component),
        items=None if in_bytes else held,
        bytes=held if in_bytes else None,
        items_per_minute=None if in_bytes else rate,
        bytes_per_minute=rate if in_bytes else 0.0,
        share=0.0,
        is_leak=True,
    )


def _is_named(component: Component, explanation: Explanation) -> bool:
    """Whether a leak of the explanation is the same growth."""
    kinds = _SAME_KINDS.get((component.resource, component.name), ())
    if component.resource == "gpu_memory":
        kinds = ("gpu",)
    return any(
        found.type == str(component)
        or found.kind in kinds
        or (component.resource == "buffer" and _is_of(found.path, component.name))
        for found in explanation.findings
        if found.is_leak
    )


def _is_of(path: str | None, name: str) -> bool:
    return path is not None and (path == name or path.endswith(f".{name}"))


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
