"""What the search for growing containers does not see, as findings.

Levels that leak by the definition of the rules, counts that rise too fast to call the program healthy, and
buffers that keep autograd graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from heapwatch.analysis.judge import Verdicts
from heapwatch.analysis.leak import BYTES
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import STEP_SECONDS
from heapwatch.analysis.verdict import Word
from heapwatch.collectors.buffers import HeldGraphs
from heapwatch.explain.findings import Explanation, Finding, ranked
from heapwatch.text.numbers import duration, wait

_PAUSE_SECONDS = 60.0  # between two evaluations, which may take tens of milliseconds
# A count that rose at each of the last evaluations, to its highest, by more than this share of it a minute.
_RISES = 3
_LEAST_SHARE = 0.01
_COUNTED = ("bodies", "entities", "events", "objects")
_JUDGED_MINUTES = 6  # that the rules need for fast growth
DETACH = "`tensor.detach().cpu()` before storing, or `.item()` for a number: each keeps its autograd graph"
_COMFORT: tuple[Word, ...] = ("healthy", "warm-up", "filling")
# The findings of the explainer that speak of the same growth.
_SAME_KINDS = {
    ("memory", "trainer"): ("container", "type", "buffer", "native", "allocator"),
    ("memory", "worker"): ("worker",),
    ("objects", "worker_processes"): ("worker",),
}


class LeakingLevels:
    """What leaks by the rules, which `judge` applies to the process's own series."""

    def __init__(self, judge: Callable[[], Verdicts], clock: Callable[[], float] = time.monotonic) -> None:
        self._judge = judge
        self._clock = clock
        self._judged = self._cleaned = float("-inf")
        self._found: list[tuple[Component, Finding]] = []
        self._rising: list[tuple[float, Finding]] = []

    def cleaned_up(self) -> None:
        """After a cleanup: how a count rose before it says nothing about now."""
        self._cleaned, self._rising = self._clock(), []

    def beside(self, explanation: Explanation) -> Explanation:
        """Add what leaks and is no finding yet: the verdict speaks of everything that is watched."""
        now = self._clock()
        if now - self._judged >= _PAUSE_SECONDS:
            verdicts = self._judge()
            self._judged, self._found = now, list(_findings(verdicts))
            # The rules may not have a level since then.
            self._rising = _rising(verdicts) if now - self._cleaned >= STEP_SECONDS else []
        missing = [found for component, found in self._found if not _is_named(component, explanation)]
        if missing:
            return replace(explanation, verdict="leak", findings=ranked([*explanation.findings, *missing]))
        if self._rising and explanation.verdict in _COMFORT:
            found = (*(one for _, one in self._rising), *explanation.findings)
            waits = _waits(self._rising[0][0])
            return replace(explanation, verdict="too early", detail=waits, findings=found)
        return explanation


def _findings(verdicts: Verdicts) -> Iterator[tuple[Component, Finding]]:
    for component, rate in verdicts.leaking().items():
        yield component, _finding(component, verdicts.levels[component][-1], rate)
    for component, items in verdicts.longer_than_allowed().items():
        capacity = verdicts.capacity[component][-1]
        found = _finding(component, items, 0.0)
        yield component, replace(found, capacity_items=None if capacity is None else round(capacity))
    for component, tensors in verdicts.holding_graphs().items():
        yield component, _graph_finding(HeldGraphs(component.name, component.name, tensors, None, None, None))


def _rising(verdicts: Verdicts) -> list[tuple[float, Finding]]:
    """Rising counts, fastest first, with the minutes of the rise; `verdicts.levels` has none with a bound."""
    found = []
    for component, level in verdicts.levels.items():
        if component.resource not in _COUNTED:
            continue
        known = [value for value in level if value is not None]
        rises = len(list(takewhile(lambda pair: pair[0] > pair[1], pairwise(reversed(known)))))
        if not rises or rises < min(_RISES, len(known) - 1) or known[-1] < max(known):
            continue
        minutes = rises * STEP_SECONDS / 60
        rate = (known[-1] - known[-1 - rises]) / minutes
        if rate > _LEAST_SHARE * known[-1]:
            found.append((minutes, replace(_finding(component, known[-1], rate), is_leak=False)))
    return sorted(found, key=lambda one: -(one[1].items_per_minute or 0.0))


def _waits(minutes: float) -> str:
    if minutes < _JUDGED_MINUTES:
        return f"Whether it continues is known in {wait(60 * (_JUDGED_MINUTES - minutes))}."
    return f"It has risen for {duration(60 * minutes)}, and the leak rules are not certain yet."


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


def with_graphs(explanation: Explanation, held: Sequence[HeldGraphs]) -> Explanation:
    """Add a finding for each such buffer. The verdict is then a leak, whatever else was found."""
    if not held:
        return explanation
    others = list(explanation.findings)
    findings = []
    for buffer in held:
        same = next((one for one in others if _is_of(one.path, buffer.path) or one.path == buffer.name), None)
        if same is None:
            findings.append(_graph_finding(buffer))
        else:
            others.remove(same)
            findings.append(replace(same, remedy=DETACH, is_leak=True))
    return replace(explanation, verdict="leak", findings=ranked([*findings, *others]))


def _graph_finding(buffer: HeldGraphs) -> Finding:
    return Finding(
        kind="buffer",
        path=buffer.path,
        type=f"{buffer.tensors:,.0f} tensors with their autograd graphs",
        items=None if buffer.items is None else round(buffer.items),
        bytes=None if buffer.nbytes is None else round(buffer.nbytes),
        capacity_items=None if buffer.capacity is None else round(buffer.capacity),
        remedy=DETACH,
        is_leak=True,
    )
