"""Checkpoints: named points of a run with memory and object counts, and the growth between them."""

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

    `ages` has the age in seconds of each count that was taken before the checkpoint.
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
        baseline, current = self.baseline.objects, self.current.objects
        return {name: current[name] - baseline[name] for name in current if name in baseline}

    def __str__(self) -> str:
        share = self.bytes / self.baseline.resident_bytes
        lines = [
            f"Baseline: {self.baseline.label}",
            f"Current:  {self.current.label}",
            f"RAM:      {gigabytes(self.baseline.resident_bytes)} -> "
            f"{gigabytes(self.current.resident_bytes)} ({gigabytes(self.bytes, signed=True)}, {share:+.1%})",
        ]
        baseline, current = self.baseline.objects, self.current.objects
        lines += [
            f"  {name:<20} {from_to(baseline[name], current[name])}"
            f"{_age(self.baseline, name, ', the baseline')}{_age(self.current, name, ',')}"
            for name in self.objects
        ]
        return "\n".join(map(plain, lines))


class Checkpoints:
    """The first checkpoint of a run and the newest thousand.

    `count(moment)` returns live objects by class, counted after `moment` where possible. `clock` returns
    Unix time in seconds.
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
        """Add a checkpoint; log the changes since the previous, the last of this label, and the first one."""
        label, moment = plain(label, _LONGEST_LABEL), self._clock()
        memory, census = self._memory(), self._count(moment)
        ages = {name: moment - count_time for name, count_time in census.at.items() if count_time < moment}
        checkpoint = Checkpoint(label, moment, memory, dict(census.counts), ages)
        previous = self._newest[-1] if self._newest else None
        same_label = next((point for point in reversed(self._newest) if point.label == label), None)
        first = self._first = self._first or checkpoint
        self._newest.append(checkpoint)
        if same_label is None or checkpoint.time - same_label.time >= _QUIET_SECONDS:
            log.info("%s", _log_line(checkpoint, previous, same_label, first))
        return checkpoint

    def all(self) -> tuple[Checkpoint, ...]:
        """The stored checkpoints, the oldest first."""
        newest = tuple(self._newest)
        if self._first is None or newest[0] is self._first:
            return newest
        return (self._first, *newest)

    def growth_since(self, label: str | None = None) -> CheckpointGrowth:
        """The change from the first checkpoint with this label, by default the first of all, to the newest.

        Raises:
            ValueError: there is no such checkpoint.

        """
        checkpoints = self.all()
        candidates = [
            point for point in checkpoints if label is None or point.label == plain(label, _LONGEST_LABEL)
        ]
        if not candidates:
            labels = ", ".join(dict.fromkeys(repr(point.label) for point in checkpoints)) or "none yet"
            raise ValueError(f"no checkpoint is called {label!r}; there are: {labels}")
        return CheckpointGrowth(candidates[0], checkpoints[-1])


def _log_line(
    checkpoint: Checkpoint, previous: Checkpoint | None, same_label: Checkpoint | None, first: Checkpoint
) -> str:
    parts = [f"checkpoint {checkpoint.label}: {gigabytes(checkpoint.resident_bytes)}"]
    if previous is None:
        parts.append("baseline")
    else:
        references = {f"since {previous.label}": previous}
        if same_label is not None and same_label is not previous:
            references[f"since the last {checkpoint.label}"] = same_label
        if first is not previous:
            references["since the first"] = first
        parts += [
            f"{gigabytes(checkpoint.resident_bytes - point.resident_bytes, signed=True)} {words}"
            for words, point in references.items()
        ]
    memory = checkpoint.memory
    parts.append(f"VMS {gigabytes(memory.virtual)}")
    if memory.gpu_allocated is not None and memory.gpu_reserved is not None:
        allocated, reserved = map(gigabytes, (memory.gpu_allocated, memory.gpu_reserved))
        parts.append(f"GPU {allocated}, {reserved} reserved")
    parts += [f"{name} {count:.0f}{_age(checkpoint, name)}" for name, count in checkpoint.objects.items()]
    return ", ".join(parts)


def _age(point: Checkpoint, name: str, prefix: str = "") -> str:
    """The age of the count of a class, as text; empty if it was counted at the checkpoint."""
    if name not in point.ages:
        return ""
    age = point.ages[name]
    return f"{prefix} counted {duration(age) if age >= 1 else f'{age:.2g} s'} earlier"
