"""Named points of a run: memory and objects, and their growth since."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from heapwatch.measure.objects.instances import Census
from heapwatch.text.numbers import duration, from_to, gigabytes
from heapwatch.text.terminal import plain

log = logging.getLogger("heapwatch")

_KEPT = 1000
_QUIET_SECONDS = 1.0  # between two lines of one label
_LONGEST_LABEL = 100


class Memory(NamedTuple):
    """Memory of the process, in bytes; GPU memory of torch on all devices, None where it uses none."""

    resident: int
    virtual: int
    gpu_allocated: int | None = None
    gpu_reserved: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Memory and live objects by class at a named point; `time` is Unix time in seconds.

    `ages` has the classes that could not be counted at that point, and how many seconds before it they were.
    """

    label: str
    time: float
    memory: Memory
    objects: Mapping[str, float]
    ages: Mapping[str, float] = field(default_factory=dict)

    @property
    def resident_bytes(self) -> int:
        """Resident memory, in bytes."""
        return self.memory.resident


@dataclass(frozen=True)
class CheckpointGrowth:
    """The change between two checkpoints; `str` gives a few lines of text."""

    baseline: Checkpoint
    current: Checkpoint

    @property
    def bytes(self) -> int:
        """Change of resident memory, in bytes."""
        return self.current.resident_bytes - self.baseline.resident_bytes

    @property
    def objects(self) -> dict[str, float]:
        """Change of the live objects that were counted at both points, by class."""
        before, after = self.baseline.objects, self.current.objects
        return {name: after[name] - before[name] for name in after if name in before}

    def __str__(self) -> str:
        share = self.bytes / self.baseline.resident_bytes
        lines = [
            f"Baseline: {self.baseline.label}",
            f"Current:  {self.current.label}",
            f"RAM:      {gigabytes(self.baseline.resident_bytes)} -> "
            f"{gigabytes(self.current.resident_bytes)} ({gigabytes(self.bytes, signed=True)}, {share:+.1%})",
        ]
        before, after = self.baseline.objects, self.current.objects
        lines += [
            f"  {name:<20} {from_to(before[name], after[name])}"
            f"{_age(self.baseline, name, ', the baseline')}{_age(self.current, name, ',')}"
            for name in self.objects
        ]
        return "\n".join(map(plain, lines))


class Checkpoints:
    """The first checkpoint of a run and the newest thousand.

    `count` returns live objects by class, of which as many as possible were counted after the time that it is
    given; `clock` the seconds since 1970.
    """

    def __init__(
        self,
        memory: Callable[[], Memory],
        count: Callable[[float], Census],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._memory = memory
        self._count = count
        self._clock = clock
        self._first: Checkpoint | None = None
        self._newest: deque[Checkpoint] = deque(maxlen=_KEPT)

    def take(self, label: str) -> Checkpoint:
        """Add a checkpoint, and log the change since the previous, the label's last and the first one."""
        label, moment = plain(label, _LONGEST_LABEL), self._clock()
        memory, census = self._memory(), self._count(moment)
        ages = {name: moment - at for name, at in census.at.items() if at < moment}
        now = Checkpoint(label, moment, memory, dict(census.counts), ages)
        before = self._newest[-1] if self._newest else None
        same = next((point for point in reversed(self._newest) if point.label == label), None)
        first = self._first = self._first or now
        self._newest.append(now)
        if same is None or now.time - same.time >= _QUIET_SECONDS:
            log.info("%s", _line(now, before, same, first))
        return now

    def all(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that are kept, the oldest first."""
        kept = tuple(self._newest)
        return kept if self._first is None or kept[0] is self._first else (self._first, *kept)

    def growth_since(self, label: str | None = None) -> CheckpointGrowth:
        """The change between the first checkpoint of this label, or of all, and the newest one.

        Raises:
            ValueError: there is no such checkpoint.

        """
        kept = self.all()
        named = [point for point in kept if label is None or point.label == plain(label, _LONGEST_LABEL)]
        if not named:
            known = ", ".join(dict.fromkeys(repr(point.label) for point in kept)) or "none yet"
            raise ValueError(f"no checkpoint is called {label!r}; there are: {known}")
        return CheckpointGrowth(named[0], kept[-1])


def _line(now: Checkpoint, before: Checkpoint | None, same: Checkpoint | None, first: Checkpoint) -> str:
    parts = [f"checkpoint {now.label}: {gigabytes(now.resident_bytes)}"]
    if before is None:
        parts.append("baseline")
    else:
        others = {
            f"since {before.label}": before,
            f"since the last {now.label}": same,
            "since the first": first,
        }
        named = {words: point for words, point in others.items() if point is not None}
        parts += [
            f"{gigabytes(now.resident_bytes - point.resident_bytes, signed=True)} {words}"
            for words, point in named.items()
            if words == f"since {before.label}" or point is not before
        ]
    parts.append(f"VMS {gigabytes(now.memory.virtual)}")
    if now.memory.gpu_allocated is not None and now.memory.gpu_reserved is not None:
        held = f"{gigabytes(now.memory.gpu_allocated)}, {gigabytes(now.memory.gpu_reserved)} reserved"
        parts.append(f"GPU {held}")
    parts += [f"{name} {count:.0f}{_age(now, name)}" for name, count in now.objects.items()]
    return ", ".join(parts)


def _age(point: Checkpoint, name: str, which: str = "") -> str:
    """How much older than a checkpoint the count of a class is; empty if it is of that moment."""
    if name not in point.ages:
        return ""
    age = point.ages[name]
    return f"{which} counted {duration(age) if age >= 1 else f'{age:.2g} s'} earlier"
