"""Turns the series of one trainer into the input of `judge`: levels, and series of the process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import NamedTuple

from heapwatch.analysis.leak import MEMORY
from heapwatch.analysis.process import Process
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import STEP_SECONDS, Samples, Values, evaluations

# Metric -> the resource whose level it is, and the labels that name the component.
LEVELS = {
    "trainer_process_resident_memory_bytes": ("memory", ("role",)),
    "trainer_gpu_memory_allocated_bytes": ("gpu_memory", ("device",)),
    "trainer_gpu_memory_part_bytes": ("gpu_memory", ("device", "part")),
    "trainer_bodies": ("bodies", ("type",)),
    "trainer_entities": ("entities", ("type",)),
    "trainer_event_list_items": ("events", ("list",)),
    "trainer_buffer_items": ("buffer", ("buffer",)),
    "trainer_objects": ("objects", ("type",)),
    "trainer_object_size_bytes": ("object_size", ("object",)),
}
# Parts of a GPU's memory that are in use, apart from torch's, which its allocator reports.
_PARTS_IN_USE = ("jax_in_use", "cupy_in_use", "other_pools", "workers", "other_processes", "unattributed")
WORKERS = Component("memory", "worker")
_CAPACITIES = ("trainer_buffer_capacity_items", "trainer_buffer_capacity_bytes")
_COLLECTORS = {"buffers": "buffer", "sizes": "object_size"}
_CYCLES = ("episode", "epoch", "generation")


_BOUNDED = {
    "trainer_event_list_items": "events",
    "trainer_buffer_items": "buffer",
}
# Every metric that a verdict depends on.
OBSERVED = (
    *LEVELS,
    *_CAPACITIES,
    "trainer_buffer_bytes",
    "trainer_buffer_graph_tensors",
    "trainer_event_list_capacity_items",
    "trainer_process_unique_memory_bytes",
    "trainer_process_virtual_memory_bytes",
    "trainer_processes",
    "trainer_jax_compiled_programs",
    "trainer_allocator_retained_bytes",
    "trainer_progress_total",
    "trainer_cleanups_total",
    "trainer_exporter_sample_age_seconds",
    "trainer_named_leaks_growth_bytes_per_minute",
    "trainer_named_leaks_share_ratio",
    "process_start_time_seconds",
)


class Series(NamedTuple):
    """A metric and its labels, sorted by name, without job and instance."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, name: str) -> str:
        """The value of a label; empty when there is none."""
        return dict(self.labels).get(name, "")


class Observed(NamedTuple):
    """The input of the verdicts.

    Attributes:
        process: series of the process.
        levels: every watched level.
        bounded: number of items and capacity of each container that has a capacity.
        graphs: number of tensors with autograd graphs, and number of items, of each buffer.

    """

    process: Process
    levels: dict[Component, Values]
    bounded: dict[Component, tuple[Values, Values]]
    graphs: dict[Component, tuple[Values, Values]]


def observed(series: Mapping[Series, Samples], start: float, many: int) -> Observed:
    """Sample a trainer's series at `many` evaluations, every 30 seconds from `start` (seconds)."""
    seen = {one: evaluations(samples, start, many) for one, samples in series.items()}
    bounded_names = {one.label("buffer") for one in seen if one.name in _CAPACITIES}
    bounded_lists = {one.label("list") for one in seen if one.name == "trainer_event_list_capacity_items"}
    bounded = _together(
        values
        for one, values in seen.items()
        if one.name == "trainer_buffer_bytes" and one.label("buffer") in bounded_names
    )
    levels = {}
    for one, values in seen.items():
        if one.name not in LEVELS:
            continue
        resource, names = LEVELS[one.name]
        if "part" in names and one.label("part") not in _PARTS_IN_USE:
            continue
        component = Component(resource, " ".join(map(one.label, names)))
        if component.name in {"buffer": bounded_names, "events": bounded_lists}.get(resource, ()):
            continue
        levels[component] = _without(values, bounded) if component == MEMORY and bounded else values
    unique = _of(seen, "trainer_process_unique_memory_bytes", role="worker")
    if unique and WORKERS in levels:
        pairs = zip(unique, levels[WORKERS], strict=True)
        levels[WORKERS] = [resident if alone is None else alone for alone, resident in pairs]
    workers = _of(seen, "trainer_processes", role="worker")
    if workers:
        levels[Component("objects", "worker_processes")] = workers
    if programs := _of(seen, "trainer_jax_compiled_programs"):
        levels[Component("objects", "jax_programs")] = programs
    process = Process(
        start=_of(seen, "process_start_time_seconds") or _zeros(levels.get(MEMORY), many),
        time=[start + index * STEP_SECONDS for index in range(many)],
        cycles=_slowest(
            values
            for one, values in seen.items()
            if one.name == "trainer_progress_total" and one.label("unit") in _CYCLES
        ),
        steps=_of(seen, "trainer_progress_total", unit="step"),
        cleanups=_together(
            values
            for one, values in seen.items()
            if one.name == "trainer_cleanups_total"
            and (one.label("action") == "emergency" or one.label("trigger") == "http")
        ),
        bounded=bounded,
        virtual=_of(seen, "trainer_process_virtual_memory_bytes", role="trainer"),
        retained=_of(seen, "trainer_allocator_retained_bytes"),
        sample_age={
            _COLLECTORS.get(one.label("collector"), one.label("collector")): values
            for one, values in seen.items()
            if one.name == "trainer_exporter_sample_age_seconds"
        },
        named=_of(seen, "trainer_named_leaks_growth_bytes_per_minute"),
        named_share=_of(seen, "trainer_named_leaks_share_ratio"),
    )
    return Observed(process, levels, _bounded(seen), _graphs(seen))


def _bounded(seen: Mapping[Series, Values]) -> dict[Component, tuple[Values, Values]]:
    found = {}
    for one, items in seen.items():
        resource = _BOUNDED.get(one.name)
        capacity = _capacity(seen, resource, one.labels, items) if resource else None
        if resource and capacity:
            found[Component(resource, " ".join(map(one.label, LEVELS[one.name][1])))] = items, capacity
    return found


def _graphs(seen: Mapping[Series, Values]) -> dict[Component, tuple[Values, Values]]:
    return {
        Component("buffer", one.label("buffer")): (tensors, items)
        for one, tensors in seen.items()
        if one.name == "trainer_buffer_graph_tensors"
        and (items := seen.get(Series("trainer_buffer_items", one.labels)))
    }


def _capacity(
    seen: Mapping[Series, Values], resource: str, labels: tuple[tuple[str, str], ...], items: Values
) -> Values | None:
    """The capacity in items; computed from the bytes if only these are known."""
    if resource == "events":
        return seen.get(Series("trainer_event_list_capacity_items", labels))
    if known := seen.get(Series("trainer_buffer_capacity_items", labels)):
        return known
    full, held = (seen.get(Series(f"trainer_buffer_{what}", labels)) for what in ("capacity_bytes", "bytes"))
    if not full or not held:
        return None
    return [
        count * whole / part if count is not None and whole is not None and part else None
        for count, whole, part in zip(items, full, held, strict=True)
    ]


def _of(seen: Mapping[Series, Values], name: str, **labels: str) -> Values | None:
    wanted = labels.items()
    return next(
        (v for one, v in seen.items() if one.name == name and wanted <= dict(one.labels).items()), None
    )


def _zeros(values: Values | None, many: int) -> Values:
    """Start times of 0 for a trainer that exposes none, at each evaluation at which it is there."""
    return [None if value is None else 0.0 for value in values or [None] * many]


def _together(all_values: Iterable[Values]) -> Values | None:
    """The sum of the known values at each evaluation."""
    return reduce(_added, all_values, None)


def _added(left: Values | None, right: Values) -> Values:
    if left is None:
        return right
    return [b if a is None else a if b is None else a + b for a, b in zip(left, right, strict=True)]


def _without(values: Values, part: Values) -> Values:
    return [a if a is None or b is None else a - b for a, b in zip(values, part, strict=True)]


def _slowest(all_values: Iterable[Values]) -> Values | None:
    """The lowest known value at each evaluation."""
    columns = list(zip(*all_values, strict=True))
    return [min((v for v in column if v is not None), default=None) for column in columns] or None
