"""The verdict on a run: the recorded explanation, else the judge's verdict on the points."""

from __future__ import annotations

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

_MOST_SECONDS = 2 * STEP_SECONDS  # between points, for the judge to be used: one reading may be missing


class TrainerVerdict(NamedTuple):
    """The verdict of the trainer's judge on a run.

    Attributes:
        explanation: the last one in the record.
        leaking: leaking components; None without an explanation if the points are too far apart to judge.
        waits: such as "12 of 24 minutes" while a slow leak cannot be distinguished from a warm-up.

    """

    explanation: Explanation | None
    leaking: frozenset[Component] | None
    waits: str = ""

    def leaks(self, component: Component) -> bool | None:
        """Whether a component leaks; None without a verdict on it: then the cycles decide."""
        if component in (self.leaking or ()):
            return True
        return False if self.denies(component) else None

    def denies(self, component: Component) -> bool:
        """Whether the verdict excludes a leak: of anything if nothing leaks, of memory if others leak."""
        if self.explanation is not None and self.explanation.verdict != "leak":
            return True
        return self.leaking is not None and component == MEMORY


def trainer_verdict_of(run: Run) -> TrainerVerdict:
    """The verdict of the recorded explanation; without one, of the judge on the points."""
    try:
        explanation = None if run.explanation is None else explanation_of(run.explanation)
    except ValueError:
        explanation = None
    if explanation is not None and explanation.verdict in WORDS:
        leaking = frozenset(leak.component for leak in explanation.leaks)
        if explanation.verdict == "leak" and not leaking:  # a record of an earlier version, which lists none
            leaking = frozenset([MEMORY])
        return TrainerVerdict(explanation, leaking)
    judge = judged_in_time(run)
    if judge is None:
        return TrainerVerdict(None, None)
    watched_minutes = judge.watched_minutes
    waits = f"{watched_minutes:.0f} of {MATURE_MINUTES} minutes" if watched_minutes < MATURE_MINUTES else ""
    return TrainerVerdict(None, frozenset(leak.component for leak in judge.leaks), waits)


def judged_in_time(run: Run) -> TrainerJudge | None:
    """The trainer's judge after this run; None if the points of the second half are too far apart."""
    times = [point.time for point in run.points if point.event != "checkpoint"]  # just after another one
    middle = (times[0] + times[-1]) / 2
    gaps = [later - earlier for earlier, later in pairwise(times) if later >= middle]
    if not gaps or median(gaps) > _MOST_SECONDS:
        return None
    judge = TrainerJudge()
    for point in run.points:
        if judge.is_due(point.time):
            judge.observe(point.time, _sample(point, point.time - times[0]))
    return judge


def _sample(point: Point, age_seconds: float) -> Sample:
    """The recorded part of the judge's input at a point."""
    levels: dict[Component, float | None] = {
        MEMORY: point.resident_bytes - point.bounded_bytes,
        WORKERS: point.worker_bytes,
        Component("gpu_memory", "all"): point.gpu_allocated_bytes,
    }
    levels |= {Component("objects", name): count for name, count in point.objects.items()}
    levels |= {component_of(name): count for name, count in point.items.items() if name not in point.bounds}
    buffers = {Component("buffer", name): buffer for name, buffer in point.buffers.items()}
    return Sample(
        levels={component: level for component, level in levels.items() if level is not None},
        age_seconds=age_seconds,
        cycles=next((point.progress[unit] for unit in CYCLES if unit in point.progress), None),
        steps=point.progress.get("step"),
        buffer_bytes=point.bounded_bytes,
        virtual=point.virtual_bytes,
        bounded={
            component: (buffer.nbytes, buffer.full_bytes)
            for component, buffer in buffers.items()
            if buffer.full_bytes
        },
        graphs={
            component: (point.graphs.get(component.name, 0.0), buffer.items or 0.0)
            for component, buffer in buffers.items()
        },
        reading_ages={
            Component("objects", name): point.time - count_time
            for name, count_time in point.counted_at.items()
        },
    )
