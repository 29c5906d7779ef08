"""Reads levels and limits from the series of an exposition, and finds levels over their limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from prometheus_client import Metric

# resource -> the series that carries its level and the label that names its component
LEVEL_SERIES = {
    "memory": ("trainer_process_resident_memory_bytes", "role"),
    "gpu_memory": ("trainer_gpu_process_memory_bytes", "device"),
    "bodies": ("trainer_bodies", "type"),
    "entities": ("trainer_entities", "type"),
    "events": ("trainer_event_list_items", "list"),
    "buffer": ("trainer_buffer_items", "buffer"),
    "objects": ("trainer_objects", "type"),
    "object_size": ("trainer_object_size_bytes", "object"),
}
SUMMED = ("memory", "bodies")
# The component that a limit without a component applies to, where it is not each one.
WHOLE = {"memory": "trainer", "bodies": "all"}
# Longer than the slowest healthy step, evaluation or checkpoint that a trainer is expected to make.
STALLED_SECONDS = 300.0
PAUSES = 3
# Times the bound that a container declares: it may be trimmed only every so often and be longer in between.
PAST_BOUND = 1.1
Limit = TypeVar("Limit")
SEVERITIES = ("warning", "critical", "emergency")  # in rising order


class Component(NamedTuple):
    """A resource and the name of one instance of it."""

    resource: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.name}".strip()


MEMORY = Component("memory", "trainer")
GROWN = Component("memory", "since start")  # bytes of the trainer's memory above its baseline


@dataclass(frozen=True)
class ExceededLimit:
    """A level or a growth rate over its limit; growth and its limit are per minute.

    For kind `leak` it is growth with a limit of 0, or the number of items of a container with its bound. For
    kind `graphs` it is the number of tensors in a buffer that keep their autograd graphs.
    """

    severity: str
    kind: str
    resource: str
    component: str
    value: float
    limit: float


class Readings:
    """The samples of one exposition, found by name and label; a value that is not finite is left out."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                if math.isfinite(sample.value):
                    self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def value(self, name: str, **labels: str) -> float | None:
        """Return the first sample of `name` with these labels, or None."""
        for sample_labels, value in self._samples.get(name, ()):
            if all(sample_labels.get(label) == wanted for label, wanted in labels.items()):
                return value
        return None

    def samples(self, name: str) -> Sequence[tuple[Mapping[str, str], float]]:
        """Return the samples of `name` with their labels."""
        return self._samples.get(name, ())

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the samples of `name` by the value of one label."""
        return {labels.get(label, ""): value for labels, value in self._samples.get(name, ())}

    def labels(self, name: str) -> dict[str, str]:
        """Return the labels of the first sample of `name`; empty when there is none."""
        samples = self._samples.get(name)
        return dict(samples[0][0]) if samples else {}

    def levels(self) -> dict[Component, float]:
        """Return every watched level. Bodies and memory also have their sum, as component `all`.

        For workers it is the memory that they do not share, where that is known.
        """
        levels = {
            Component(resource, name): level
            for resource, (series, label) in LEVEL_SERIES.items()
            for name, level in self.by(series, label).items()
        }
        unique = self.value("trainer_process_unique_memory_bytes", role="worker")
        if unique is not None and Component("memory", "worker") in levels:
            levels[Component("memory", "worker")] = unique
        for resource in SUMMED:
            parts = [level for component, level in levels.items() if component.resource == resource]
            if parts:
                levels[Component(resource, "all")] = sum(parts)
        return levels

    def grown(self) -> dict[Component, float]:
        """Return the bytes of memory above the level at which training began; empty while unknown."""
        began = self.value("trainer_memory_baseline_bytes")
        resident = self.value("trainer_process_resident_memory_bytes", role="trainer")
        return {} if began is None or resident is None else {GROWN: resident - began}

    def limits(self) -> dict[Component, dict[str, float]]:
        """Return the limits that the trainer declares, by severity.

        Component "" means each component of the resource, for memory the trainer's process, for bodies their
        sum.
        """
        limits: dict[Component, dict[str, float]] = {}
        for labels, value in self._samples.get("trainer_limit", ()):
            resource = labels.get("resource", "")
            component = Component(resource, labels.get("component", "") or WHOLE.get(resource, ""))
            limits.setdefault(component, {})[labels.get("severity", "")] = value
        return limits

    def growth_limits(self) -> dict[Component, float]:
        """Return the growth limits per minute that the trainer declares."""
        return {
            Component(labels.get("resource", ""), labels.get("component", "")): value
            for labels, value in self._samples.get("trainer_growth_limit", ())
            if labels.get("per") == "minute"
        }

    def growth_limits_by_key(self) -> dict[str, float]:
        """Return the growth limits that the trainer declares, by `resource/component/period`."""
        return {
            "/".join(labels.get(label, "") for label in ("resource", "component", "per")): value
            for labels, value in self._samples.get("trainer_growth_limit", ())
        }

    def training(self, now: float) -> str:
        """Return `progressing`, `stalled`, or `unknown` until the first step.

        A pause counts as progress up to three times the longest one so far: some trainers have long cycles.
        """
        age = self.seconds_since_progress(now)
        if age is None:
            return "unknown"
        pause = self.value("trainer_longest_pause_seconds") or 0.0
        return "progressing" if age < max(STALLED_SECONDS, PAUSES * pause) else "stalled"

    def seconds_since_progress(self, now: float) -> float | None:
        """Return the seconds since training last made progress, or None if it reported none."""
        progressed = self.value("trainer_last_progress_timestamp_seconds")
        return None if not progressed else max(0.0, now - progressed)


def limit_of(component: Component, limits: Mapping[Component, Limit]) -> Limit | None:
    """Return the limit of a component, else the limit for each component of its resource."""
    return limits.get(component, limits.get(Component(component.resource, "")))


def threshold_alert(component: Component, level: float, limits: Mapping[str, float]) -> ExceededLimit | None:
    """Return the alert of the highest severity whose limit the level has reached."""
    for severity in reversed(SEVERITIES):
        limit = limits.get(severity)
        if limit is not None and level >= limit:
            return ExceededLimit(severity, "threshold", component.resource, component.name, level, limit)
    return None


def growth_alert(component: Component, per_minute: float | None, limit: float) -> ExceededLimit | None:
    """Return the alert of a growth rate over its limit."""
    if per_minute is None or per_minute <= limit:
        return None
    return ExceededLimit("warning", "growth", component.resource, component.name, per_minute, limit)
