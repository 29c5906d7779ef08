"""Made-up trainers, a sample every 30 seconds, and the minute in which the judge finds a leak."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.trainer import Leak, Sample, TrainerJudge

MINUTES = 80
Level = Callable[[float], float]  # of the minute


def sample(minute: float, levels: dict[Component, float], **more: Any) -> Sample:
    """A sample in which each value may be a function of the minute."""
    known = {name: value(minute) if callable(value) else value for name, value in more.items()}
    return Sample(levels=levels, **({"age_seconds": 60 * minute} | known))


def leaks(samples: Iterable[Sample], judge: TrainerJudge | None = None) -> list[tuple[Leak, ...]]:
    """What leaks after each sample."""
    judge = judge or TrainerJudge()
    return [judge.observe(30.0 * number, one) for number, one in enumerate(samples)]


def first(level: Level, component: Component = MEMORY, minutes: float = MINUTES, **more: Any) -> float | None:
    """The minute in which a component is found to leak; None if it is not."""
    samples = [sample(at / 2, {component: level(at / 2)}, **more) for at in range(round(2 * minutes))]
    found = enumerate(leaks(samples))
    return next((at / 2 for at, one in found if any(leak.component == component for leak in one)), None)


def ramp(level: float, per_minute: float, since: float = 40.0) -> Level:
    return lambda minute: level + per_minute * max(0.0, minute - since)
