"""Data types of a recorded run: points with the levels of a trainer, and their conversion to JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heapwatch.collectors.readings import Readings
from heapwatch.judge.component import WORKERS, Component
from heapwatch.judge.trainer import PAST_BOUND

CYCLES = ("generation", "epoch", "episode")  # the largest first
# Resource by the suffix of a count's name; names without one are entities.
_RESOURCE_BY_SUFFIX = {" bodies": "bodies", " events": "events", " buffer items": "buffer"}
_SHORTEST_PAUSE_SECONDS = 0.5  # a phase may end a millisecond after the cycle before it
_CLOCKS_SECONDS = 0.01  # by which two clocks may differ


class Buffer(NamedTuple):
    """A replay buffer; `full_bytes` is its size when full, None without a bound."""

    nbytes: float
    items: float | None = None
    full_bytes: float | None = None

    @property
    def past_bound(self) -> bool:
        """Whether it holds more than it may, by more than a tenth."""
        return self.full_bytes is not None and self.nbytes > PAST_BOUND * self.full_bytes


@dataclass(frozen=True)
class Point:
    """Levels at one moment, in bytes or counts; None or absent if unknown.

    `event` is the `start` of the recording, the end of a `phase`, a `checkpoint`, the end of a `cycle` (a
    generation, an epoch, an episode), or a `sample` at any other time. `phase` is the one that ends here, or
    ended just before the checkpoint. `time` is Unix time in seconds. `objects` has live objects by class,
    `counted_at` the time of each count, `items` other counts (`static bodies`, `food_sources`, items of a
    buffer without a bound), `bounds` upper bounds of objects and items, `graphs` the number of tensors in a
    buffer that keep their autograd graph, `large` class and bytes of the largest single objects, if the
    trainer searched for them.
    """

    time: float
    event: str
    resident_bytes: float
    phase: str = ""
    delta_bytes: float | None = None
    virtual_bytes: float | None = None
    worker_bytes: float | None = None
    gpu_allocated_bytes: float | None = None
    gpu_reserved_bytes: float | None = None
    progress: Mapping[str, float] = field(default_factory=dict)
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    objects: Mapping[str, float] = field(default_factory=dict)
    counted_at: Mapping[str, float] = field(default_factory=dict)
    items: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    graphs: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)
    growth_limits: Mapping[str, float] = field(default_factory=dict)
    large: Sequence[tuple[str, float]] = ()

    @property
    def bounded_bytes(self) -> float:
        """Bytes in buffers up to their bounds: growth that will end."""
        bounded = (buffer for buffer in self.buffers.values() if buffer.full_bytes is not None)
        return sum(min(buffer.nbytes, buffer.full_bytes or 0.0) for buffer in bounded)

    def cycle(self, unit: str) -> int:
        """Number of the cycle of this point, from 1; 0 is before the first."""
        completed = int(self.progress.get(unit, 0))
        if self.event == "start":
            return completed
        return max(1, completed if self.event == "cycle" else completed + 1)

    def is_counted_since(self, time: float, name: str) -> bool:
        """Whether a class was counted between `time` and this point, or at an unknown time."""
        count_time = self.counted_at.get(name)
        return count_time is None or time < count_time <= self.time + _CLOCKS_SECONDS

    def count(self, name: str) -> float:
        """The count of a class or of another counted item; 0 if unknown."""
        return self.objects.get(name, self.items.get(name, 0.0))

    def growth_limit(self, resource: str, component: str, unit: str) -> float | None:
        """The declared limit of growth per `unit`: of the component, else of all components."""
        limit = self.growth_limits.get(f"{resource}/{component}/{unit}")
        return self.growth_limits.get(f"{resource}//{unit}") if limit is None else limit


class Pace:
    """Selects whole cycles at intervals that grow with the run: all at first, later ever fewer.

    The number of selected points grows with the logarithm of the run's length. Without cycles, the ends of
    each phase and other points are selected at such intervals. Points with the largest objects always are.

    Args:
        share: the interval, as a share of the time since the first point.

    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began: float | None = None
        self._next: dict[str, float] = {}  # by phase, or for all of a cycle by its unit
        self._cycle: int | None = None
        self._keeps = True

    def keeps(self, point: Point) -> bool:
        """Whether to keep the next point."""
        if self._began is None:
            self._began = point.time
        if point.event == "checkpoint" and point.phase:
            return self._keeps  # with the end of the phase
        unit = next((unit for unit in CYCLES if unit in point.progress), "")
        cycle = point.cycle(unit) if unit else None
        if cycle is None or cycle != self._cycle:
            self._cycle = cycle
            key = unit or point.phase
            self._keeps = point.time >= self._next.get(key, 0.0)
            if self._keeps:
                pause = self._share * (point.time - self._began)
                self._next[key] = point.time + (pause if pause >= _SHORTEST_PAUSE_SECONDS else 0.0)
        return self._keeps or bool(point.large)


@dataclass(frozen=True)
class Run:
    """A recorded run: points in order of time, and the last recorded JSON document of `/explain`."""

    trainer: str
    points: tuple[Point, ...]
    explanation: Mapping[str, Any] | None = None


def point_of(
    readings: Readings,
    *,
    time: float,
    event: str,
    resident_bytes: float | None = None,
    **fields: Any,
) -> Point | None:
    """Make a point from an exposition or a part of it; None if its resident memory is unknown.

    `time` is Unix time in seconds. `fields` and `resident_bytes` replace values of the exposition.
    """
    by_role = readings.by("trainer_process_resident_memory_bytes", "role")
    resident = by_role.get("trainer") if resident_bytes is None else resident_bytes
    if resident is None:
        return None
    ages = readings.by("trainer_objects_age_seconds", "type")
    nbytes, items, full = (
        readings.by(f"trainer_buffer_{unit}", "buffer") for unit in ("bytes", "items", "capacity_bytes")
    )
    return Point(
        time=time,
        event=event,
        resident_bytes=resident,
        virtual_bytes=readings.value("trainer_process_virtual_memory_bytes", role="trainer"),
        worker_bytes=readings.levels().get(WORKERS),
        gpu_allocated_bytes=_sum(readings.by("trainer_gpu_memory_allocated_bytes", "device")),
        gpu_reserved_bytes=_sum(readings.by("trainer_gpu_memory_reserved_bytes", "device")),
        buffers={name: Buffer(size, items.get(name), full.get(name)) for name, size in nbytes.items()},
        items=_items(readings),
        bounds=_bounds(readings),
        graphs={name: n for name, n in readings.by("trainer_buffer_graph_tensors", "buffer").items() if n},
        sizes=readings.by("trainer_object_size_bytes", "object"),
        growth_limits=readings.growth_limits_by_key(),
        **{
            "progress": readings.by("trainer_progress_total", "unit"),
            "objects": readings.by("trainer_objects", "type"),
            "counted_at": {name: round(time - age, 3) for name, age in ages.items()},
            **fields,
        },
    )


def component_of(name: str) -> Component:
    """The component that an entry of `Point.items` counts."""
    for suffix, resource in _RESOURCE_BY_SUFFIX.items():
        if name.endswith(suffix):
            return Component(resource, name.removesuffix(suffix))
    return Component("entities", name)


def _items(readings: Readings) -> dict[str, float]:
    """Counts of everything but live objects."""
    buffer_items = readings.by("trainer_buffer_items", "buffer")
    bounds = [readings.by(f"trainer_buffer_capacity_{unit}", "buffer") for unit in ("items", "bytes")]
    return {
        **{f"{name} bodies": count for name, count in readings.by("trainer_bodies", "type").items()},
        **readings.by("trainer_entities", "type"),
        **_as_events(readings.by("trainer_event_list_items", "list")),
        **{
            f"{name} buffer items": buffer_items[name]
            for name in buffer_items
            if not any(name in known for known in bounds)
        },
    }


def _bounds(readings: Readings) -> dict[str, float]:
    """Capacities of event lists, and expected instances of classes: one less than the warning limit."""
    expected = {
        component.name: limits["warning"] - 1
        for component, limits in readings.limits().items()
        if component.resource == "objects" and component.name and limits.get("warning", 0.0) > 1
    }
    return {**_as_events(readings.by("trainer_event_list_capacity_items", "list")), **expected}


def _as_events(lists: Mapping[str, float]) -> dict[str, float]:
    return {f"{name} events": count for name, count in lists.items()}


def to_json(point: Point) -> dict[str, Any]:
    """The point as a JSON object, without unknown fields."""
    return {key: value for key, value in vars(point).items() if value not in (None, "", {}, ())}


def from_json(document: Mapping[str, Any]) -> Point:
    """Read a point that `to_json` wrote.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: the document is no point.

    """
    buffers = {name: Buffer(*parts) for name, parts in document.get("buffers", {}).items()}
    large = tuple((name, nbytes) for name, nbytes in document.get("large", ()))
    return Point(**{**document, "buffers": buffers, "large": large})


def _sum(values: Mapping[str, float]) -> float | None:
    return sum(values.values()) if values else None
