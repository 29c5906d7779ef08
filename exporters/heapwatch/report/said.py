"""What the trainer's judge says of a run: in the recorded explanation, or now that it is told the points."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from heapwatch.explain.findings import Explanation
from heapwatch.explain.received import explanation_of
from heapwatch.judge.component import MEMORY, WORKERS, Component
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.trainer import MATURE_MINUTES, Sample, TrainerJudge
from heapwatch.judge.verdict import WORDS
from heapwatch.recording.points import CYCLES, Point, Run, component_of

_MOST_SECONDS = 2 * STEP_SECONDS  # between points that are judged in time: one reading may be missed


class Said(NamedTuple):
    """What the trainer's judge says: what leaks, and of what it says that it does not."""

    leaking: frozenset[Component] = frozenset()
    denies: Callable[[Component], bool] = lambda _: False
    waits: str = ""

    def of(self, component: Component) -> bool | None:
        """Whether this leaks; None if it says nothing about it, and the cycles decide."""
        if component in self.leaking:
            return True
        return False if self.denies(component) else None


def recorded_explanation(run: Run) -> Explanation | None:
    """The last explanation in a record; None if there is none that can be shown."""
    try:
        found = None if run.explanation is None else explanation_of(run.explanation)
    except ValueError:
        return None
    return None if found is None or found.verdict not in WORDS else found


def said_by(explanation: Explanation) -> Said:
    """If it says that something leaks, the cycles tell which counts do; otherwise nothing does."""
    if explanation.verdict != "leak":
        return Said(denies=lambda _: True)
    leaking = frozenset(leak.component for leak in explanation.leaks)
    return Said(leaking or frozenset([MEMORY]), _is_memory)  # records of earlier versions list none


def said_in_time(run: Run) -> Said:
    """What the judge would have said, if the points lie close enough for it."""
    judge = judged_in_time(run)
    if judge is None:
        return Said()
    watched = judge.watched_minutes
    waits = f"{watched:.0f} of {MATURE_MINUTES} minutes" if watched < MATURE_MINUTES else ""
    return Said(frozenset(leak.component for leak in judge.leaks), _is_memory, waits)


def _is_memory(component: Component) -> bool:
    return component == MEMORY


def judged_in_time(run: Run) -> TrainerJudge | None:
    """The trainer's judge after this run; None if the points of its second half are too far apart for it."""
    times = [point.time for point in run.points]
    middle = (times[0] + times[-1]) / 2
    pauses = [later - before for before, later in pairwise(times) if later >= middle]
    if not pauses or median(pauses) > _MOST_SECONDS:
        return None
    judge = TrainerJudge()
    for point in run.points:
        if judge.is_due(point.time):
            judge.observe(point.time, _sample(point, point.time - times[0]))
    return judge


def _sample(point: Point, age_seconds: float) -> Sample:
    """What the judge would have been told at a point, as far as it is recorded."""
    levels: dict[Component, float | None] = {
        MEMORY: point.resident_bytes - point.bounded_bytes,
        WORKERS: point.worker_bytes,
        Component("gpu_memory", "all"): point.gpu_allocated_bytes,
    }
    levels |= {Component("objects", name): count for name, count in point.objects.items()}
    levels |= {component_of(name): count for name, count in point.items.items() if name not in point.bounds}
    held = {Component("buffer", name): buffer for name, buffer in point.buffers.items()}
    return Sample(
        levels={component: level for component, level in levels.items() if level is not None},
        age_seconds=age_seconds,
        cycles=next((point.progress[unit] for unit in CYCLES if unit in point.progress), None),
        steps=point.progress.get("step"),
        buffer_bytes=point.bounded_bytes,
        virtual=point.virtual_bytes,
        bounded={
            one: (buffer.nbytes, buffer.full_bytes) for one, buffer in held.items() if buffer.full_bytes
        },
        graphs={one: (point.graphs.get(one.name, 0.0), buffer.items or 0.0) for one, buffer in held.items()},
        reading_ages={} if point.counted_at is None else {"objects": point.time - point.counted_at},
    )
