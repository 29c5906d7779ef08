"""Levels that leak by the definition of the rules, such as bodies or events, as findings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from heapwatch.analysis.judge import Verdicts
from heapwatch.analysis.leak import BYTES
from heapwatch.analysis.readings import Component
from heapwatch.explain.findings import Explanation, Finding, ranked

_PAUSE_SECONDS = 60.0  # between two evaluations, which may take tens of milliseconds
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

    def beside(self, explanation: Explanation) -> Explanation:
        """Add what leaks and is no finding yet: the verdict speaks of everything that is watched."""
        now = self._clock()
        if now - self._judged >= _PAUSE_SECONDS:
            self._judged, self._found = now, list(_findings(self._judge()))
        missing = [found for component, found in self._found if not _is_named(component, explanation)]
        if not missing:
            return explanation
        return replace(explanation, verdict="leak", findings=ranked([*explanation.findings, *missing]))


def _findings(verdicts: Verdicts) -> Iterator[tuple[Component, Finding]]:
    for component, pace in verdicts.leaking().items():
        yield component, _finding(component, verdicts.levels[component][-1], pace)
    for component, items in verdicts.longer_than_allowed().items():
        capacity = verdicts.capacity[component][-1]
        found = _finding(component, items, 0.0)
        yield component, replace(found, capacity_items=None if capacity is None else round(capacity))


def _finding(component: Component, level: float | None, pace: float) -> Finding:
    held, in_bytes = None if level is None else round(level), component.resource in BYTES
    return Finding(
        kind="level",
        path=None,
        type=str(component),
        items=None if in_bytes else held,
        bytes=held if in_bytes else None,
        items_per_minute=None if in_bytes else pace,
        bytes_per_minute=pace if in_bytes else 0.0,
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
