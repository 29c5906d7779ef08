"""A fleet of trainers at work: what each exposes at a moment, and what the rules have recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.leaks.scenario import Scenario
from benchmarks.prometheus import Sample

LEAKING = 25  # one trainer in so many
_LEAKING_LABELS = ({"role": "trainer"}, {"type": "Tensor"})

Series = tuple[str, dict[str, str]]  # metric and labels
Shape = list[Series]  # what a trainer exposes

# The metrics that become watched levels, and the resource of each.
LEVELS = {
    "trainer_process_resident_memory_bytes": "memory",
    "trainer_gpu_memory_allocated_bytes": "gpu_memory",
    "trainer_bodies": "bodies",
    "trainer_entities": "entities",
    "trainer_event_list_items": "events",
    "trainer_buffer_items": "buffer",
    "trainer_objects": "objects",
    "trainer_object_size_bytes": "object_size",
}
COUNTED = ("bodies", "entities", "objects")  # judged as they are: `unexplained` is not recorded of them
_COLLECTORS = ("process", "gpu", "bodies", "entities", "events", "buffers", "objects", "sizes")

# A trainer with a world, a replay buffer, a population, workers, a GPU, and what its exporter says of itself.
EVERYTHING: Shape = [
    (metric, {label: value} if label else {})
    for metric, label, values in [
        ("trainer_process_resident_memory_bytes", "role", ("trainer", "worker")),
        ("trainer_gpu_memory_allocated_bytes", "device", ("0",)),
        ("trainer_gpu_memory_reserved_bytes", "device", ("0",)),
        ("trainer_bodies", "type", ("static", "dynamic", "terrain", "agent", "unknown")),
        ("trainer_entities", "type", ("food_sources",)),
        ("trainer_event_list_items", "list", ("consumption", "death", "predation")),
        ("trainer_event_list_capacity_items", "list", ("death",)),
        ("trainer_buffer_items", "buffer", ("replay",)),
        ("trainer_buffer_bytes", "buffer", ("replay",)),
        ("trainer_buffer_capacity_items", "buffer", ("replay",)),
        ("trainer_buffer_capacity_bytes", "buffer", ("replay",)),
        ("trainer_objects", "type", ("DDPGAgent", "TradingEnvironment", "Tensor")),
        ("trainer_object_size_bytes", "object", ("policy.state_dict", "optimizer.state_dict")),
        ("trainer_phase_end_resident_memory_bytes", "phase", ("train", "evaluate")),
        ("trainer_phase_memory_delta_bytes", "phase", ("train", "evaluate")),
        ("trainer_progress_total", "unit", ("step", "generation")),
        ("trainer_memory_limit_bytes", "", ("",)),
        ("trainer_last_progress_timestamp_seconds", "", ("",)),
        ("trainer_exporter_sample_age_seconds", "collector", _COLLECTORS),
        ("trainer_exporter_sample_interval_seconds", "collector", _COLLECTORS),
        ("trainer_exporter_collect_errors_total", "collector", _COLLECTORS),
        ("process_start_time_seconds", "", ("",)),
        ("up", "", ("",)),
        ("scrape_duration_seconds", "", ("",)),
    ]
    for value in values
]


def shapes(scenarios: Iterable[Scenario]) -> list[Shape]:
    found: list[Shape] = []
    for scenario in scenarios:
        trainers: dict[str, Shape] = {}
        for metric, labels, _ in scenario.parsed():
            trainers.setdefault(labels.pop("instance", ""), []).append((metric, labels))
        found += trainers.values()
    return found


def levels(shape: Shape) -> int:
    return sum(metric in LEVELS for metric, _ in shape)


def _value(metric: str, second: float, start: float) -> float:
    """A level that stays, or a clock that goes on."""
    if metric == "process_start_time_seconds":
        return start
    if metric == "trainer_last_progress_timestamp_seconds":
        return second
    if metric == "trainer_progress_total":
        return second - start
    if metric == "trainer_memory_limit_bytes":
        return 64e9  # no forecast fires: an alert's text costs more than its rule
    if metric.startswith(("trainer_exporter", "scrape", "up")):
        return float(metric == "up")
    return (0.4e9 if "bytes" in metric else 20.0) * (9 if "capacity" in metric else 1)


def samples(fleet: Sequence[Shape], second: float, start: float) -> Iterator[Sample]:
    """Every series of every trainer at one moment, and the recorded ones that the rules look back on.

    Args:
        fleet: what each trainer exposes.
        second: the moment, in seconds of the clock.
        start: when the trainers started.

    """
    for rank, shape in enumerate(fleet):
        who = {"job": "trainer", "instance": f"127.0.0.1:{20000 + rank}"}
        for metric, labels in shape:
            level = _value(metric, second, start)
            leaks = rank % LEAKING == 0 and labels in _LEAKING_LABELS
            value = level * (1 + (second - start) * 1e-4) if leaks else level
            yield {"__name__": metric, **who, **labels}, value
            if metric in LEVELS:
                which = {**who, "resource": LEVELS[metric], "component": next(iter(labels.values()), "")}
                judged = "level" if which["resource"] in COUNTED else "unexplained"
                for recorded in {"level", judged, "high_water"}:
                    yield {"__name__": f"job:trainer_resource:{recorded}", **which}, value
                if leaks:
                    for recorded in ("gain", "burst"):
                        yield {"__name__": f"job:trainer_resource:{recorded}", **which}, level * 3e-3
        yield {"__name__": "job:trainer_process:start", **who}, start
        if any(metric == "trainer_buffer_capacity_bytes" for metric, _ in shape):
            yield {"__name__": "job:trainer_memory:bounded_bytes", **who}, 0.4e9
        whole = {**who, "resource": "memory", "component": "all"}
        yield {"__name__": "job:trainer_forecast:committed_bytes", **whole}, 0.4e9
        if rank % LEAKING == 0:
            yield {"__name__": "job:trainer_forecast:floor_growth_per_second", **whole}, 1e4
