"""Reads levels, limits and progress from the samples of an exposition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import Metric

from heapwatch.judge.component import GROWN, MEMORY, WORKERS, Component
from heapwatch.judge.limits import ALL_MEMORY, MEMORY_SHARES, PROFILE_NAMES, PROFILES, Profile, profile_named
from heapwatch.judge.trainer import Sample

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
# The component to which a limit without a component applies; for other resources it applies to each one.
WHOLE = {"memory": "trainer", "bodies": "all"}
# Longer than the slowest healthy step, evaluation or checkpoint that a trainer is expected to make.
STALLED_SECONDS = 300.0
PAUSES = 3
# Parts of a GPU's memory in use; torch's allocator reports its own part.
_PARTS_IN_USE = ("jax_in_use", "other_pools", "workers", "other_processes", "unattributed")
_RESOURCE_OF = {"buffers": "buffer", "sizes": "object_size"}  # by the name of the collector
CYCLES = ("episode", "epoch", "generation")


class Readings:
    """The samples of one exposition, by name and label, without non-finite values."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                if math.isfinite(sample.value):
                    self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def value(self, name: str, **labels: str) -> float | None:
        """Return the first sample of `name` with these labels, or None."""
        for sample_labels, value in self._samples.get(name, ()):
            if all(sample_labels.get(label) == expected for label, expected in labels.items()):
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

        The level of workers is their unshared memory, if known.
        """
        levels = {
            Component(resource, name): level
            for resource, (series, label) in LEVEL_SERIES.items()
            for name, level in self.by(series, label).items()
        }
        unique = self.value("trainer_process_unique_memory_bytes", role="worker")
        if unique is not None and WORKERS in levels:
            levels[WORKERS] = unique
        for resource in SUMMED:
            parts = [level for component, level in levels.items() if component.resource == resource]
            if parts:
                levels[Component(resource, "all")] = sum(parts)
        return levels

    def grown(self) -> dict[Component, float]:
        """Return the bytes of memory above the level at which training began; empty while unknown."""
        baseline = self.value("trainer_memory_baseline_bytes")
        resident = self.value("trainer_process_resident_memory_bytes", role="trainer")
        return {} if baseline is None or resident is None else {GROWN: resident - baseline}

    def limits(self) -> dict[Component, dict[str, float]]:
        """Return the limits that the trainer declares, by severity.

        Component "" means each component of the resource, for memory the trainer's process, for bodies their
        sum.
        """
        return self._declared("trainer_limit", "severity", WHOLE)

    def growth_limits(self) -> dict[Component, dict[str, float]]:
        """Return the growth limits that the trainer declares, by period."""
        return self._declared("trainer_growth_limit", "per", {})

    def _declared(
        self, series: str, label: str, whole: Mapping[str, str]
    ) -> dict[Component, dict[str, float]]:
        limits: dict[Component, dict[str, float]] = {}
        for labels, value in self.samples(series):
            resource = labels.get("resource", "")
            component = Component(resource, labels.get("component", "") or whole.get(resource, ""))
            limits.setdefault(component, {})[labels.get(label, "")] = value
        return limits

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
        progress_at = self.value("trainer_last_progress_timestamp_seconds")
        return None if not progress_at else max(0.0, now - progress_at)

    def sample(self, now: float) -> Sample:
        """Return the judge's input; `now` is Unix time in seconds."""
        bounded = self.bounded()
        buffer_sizes = [
            nbytes
            for name, nbytes in self.by("trainer_buffer_bytes", "buffer").items()
            if self._declares_bound(name)
        ]
        started_at = self.value("process_start_time_seconds")
        progress = self.by("trainer_progress_total", "unit")
        cleanups = [
            value
            for labels, value in self.samples("trainer_cleanups_total")
            if labels.get("action") == "emergency" or labels.get("trigger") == "http"
        ]
        buffer_bytes = sum(buffer_sizes) if buffer_sizes else None
        return Sample(
            levels=dict(self._judged_levels(bounded, buffer_bytes or 0.0)),
            age_seconds=None if started_at is None else now - started_at,
            cycles=min((progress[unit] for unit in CYCLES if unit in progress), default=None),
            steps=progress.get("step"),
            cleanups=sum(cleanups) if cleanups else None,
            buffer_bytes=buffer_bytes,
            retained=self.value("trainer_allocator_retained_bytes"),
            virtual=self.value("trainer_process_virtual_memory_bytes", role="trainer"),
            bounded=bounded,
            graphs={
                Component("buffer", name): (tensors, items)
                for name, tensors in self.by("trainer_buffer_graph_tensors", "buffer").items()
                if (items := self.value("trainer_buffer_items", buffer=name)) is not None
            },
            to_fill={
                name: capacity - (self.value("trainer_buffer_bytes", buffer=name) or 0.0)
                for name, capacity in self.by("trainer_buffer_capacity_bytes", "buffer").items()
            },
            reading_ages={
                **{
                    _RESOURCE_OF.get(name, name): age
                    for name, age in self.by("trainer_exporter_sample_age_seconds", "collector").items()
                },
                **{
                    Component("objects", name): age
                    for name, age in self.by("trainer_objects_age_seconds", "type").items()
                },
            },
        )

    def _judged_levels(
        self, bounded: Mapping[Component, object], buffer_bytes: float
    ) -> Iterable[tuple[Component, float]]:
        for component, level in self.levels().items():
            if component == MEMORY:
                yield component, level - buffer_bytes
            elif component.resource != "gpu_memory" and component.name != "all":
                declared = component.resource == "buffer" and self._declares_bound(component.name)
                if not declared and component not in bounded:
                    yield component, level
        for device, level in self.by("trainer_gpu_memory_allocated_bytes", "device").items():
            yield Component("gpu_memory", device), level
        for labels, level in self.samples("trainer_gpu_memory_part_bytes"):
            if labels.get("part") in _PARTS_IN_USE:
                yield Component("gpu_memory", f"{labels.get('device')} {labels['part']}"), level
        for name, count in (
            ("worker_processes", self.value("trainer_processes", role="worker")),
            ("jax_programs", self.value("trainer_jax_compiled_programs")),
        ):
            if count:
                yield Component("objects", name), count

    def _declares_bound(self, buffer: str) -> bool:
        series = ("trainer_buffer_capacity_items", "trainer_buffer_capacity_bytes")
        return any(self.value(name, buffer=buffer) is not None for name in series)

    def bounded(self) -> dict[Component, tuple[float, float]]:
        """Return items and capacity of each container that has a bound."""
        return dict(self._bounded())

    def _bounded(self) -> Iterable[tuple[Component, tuple[float, float]]]:
        """Items and capacity of each container; the capacity from the bytes if only these are known."""
        for name, items in self.by("trainer_event_list_items", "list").items():
            capacity = self.value("trainer_event_list_capacity_items", list=name)
            if capacity is not None:
                yield Component("events", name), (items, capacity)
        for name, items in self.by("trainer_buffer_items", "buffer").items():
            capacity = self.value("trainer_buffer_capacity_items", buffer=name)
            full_bytes = self.value("trainer_buffer_capacity_bytes", buffer=name)
            nbytes = self.value("trainer_buffer_bytes", buffer=name)
            if capacity is None and full_bytes is not None and nbytes:
                capacity = items * full_bytes / nbytes
            if capacity is not None:
                yield Component("buffer", name), (items, capacity)


def limits_of(readings: Readings) -> dict[Component, dict[str, float]]:
    """Return the limits of a trainer's levels by severity: declared ones, else those of its profile.

    An unknown profile is ignored.
    """
    defaults = dict(_selected_profile(readings).levels)
    names = ("trainer_memory_available_bytes", "trainer_memory_limit_bytes")
    available = next(filter(None, map(readings.value, names)), None)
    if available:
        defaults[ALL_MEMORY] = {severity: share * available for severity, share in MEMORY_SHARES.items()}
    return _overridden(defaults, readings.limits())


def growth_limits_of(readings: Readings) -> dict[Component, dict[str, float]]:
    """Return the limits of a trainer's growth by period; see `limits_of`."""
    return _overridden(_selected_profile(readings).growth, readings.growth_limits())


def _overridden(
    defaults: Mapping[Component, Mapping[str, float]], declared: Mapping[Component, Mapping[str, float]]
) -> dict[Component, dict[str, float]]:
    limits = {component: dict(values) for component, values in defaults.items()}
    for component, values in declared.items():
        limits.setdefault(component, {}).update(values)
    return limits


def _selected_profile(readings: Readings) -> Profile:
    names = readings.by("trainer_limit_profile", "profile")
    return next((profile_named(name) for name in names if name in PROFILE_NAMES), PROFILES["default"])
