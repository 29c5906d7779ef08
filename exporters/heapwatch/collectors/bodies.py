"""Counts physics bodies by type in the training thread, and repeats metrics under the names of Walker.

Reads Box2D worlds without importing Box2D.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psutil
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.families import gauge
from heapwatch.collectors.readings import Readings
from heapwatch.runtime.failures import Failures, must_propagate
from heapwatch.runtime.labels import OTHER, checked_name
from heapwatch.runtime.sources import Source, count_of

TYPES = ("static", "dynamic", "terrain", "agent", "unknown")

# Types beyond the five, from a trainer's own classify function.
_MAX_TYPES = 16
_STATIC = 0  # Box2D's b2_staticBody
_MEGABYTE = 1e6


class BodyCollector:
    """Counts each body of one or several worlds under exactly one type.

    Keeps no reference to a body: a proxy that outlives its body reads freed memory. The source returns a
    world, several worlds, or `{type: count}`.

    `owners` returns groups of bodies, the main body first, or `{type: bodies}`. With groups, a static body is
    `static`, the first body of a group is `agent`, and the others are `dynamic`. A moving body without an
    owner, such as a limb that was not destroyed, is `unknown`. A type that `classify` returns has priority.
    """

    name = "bodies"

    def __init__(
        self,
        source: Source,
        classify: Callable[[Any], str | None] | None,
        owners: Source | None,
        failures: Failures,
        interval: float,
    ) -> None:
        self.interval = interval
        self._source = source
        self._classify = classify
        self._owners = owners
        self._failures = failures
        self._latest: dict[str, float] = {}

    def sample(self) -> None:
        """Count the bodies by type."""
        value = self._source.read()
        if isinstance(value, Mapping):
            counts: Mapping[str, float] = {
                checked_name("body type", kind): count_of(count) for kind, count in value.items()
            }
        else:
            counts = self._walk(_worlds(value))
        self._latest = dict(counts)
        if len(counts) > _MAX_TYPES:
            ranked = sorted(counts, key=lambda kind: counts[kind], reverse=True)
            self._latest = {kind: counts[kind] for kind in ranked[:_MAX_TYPES]}
            rest = sum(counts[kind] for kind in ranked[_MAX_TYPES:])
            self._latest[OTHER] = self._latest.get(OTHER, 0) + rest
            self._failures.record_left_out(self.name)

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last sample."""
        yield gauge(
            "trainer_bodies", "Physics bodies; each is counted under exactly one type.", "type", self._latest
        )

    def locked(self) -> bool:
        """Whether any world is inside its own step, when its bodies must not be read."""
        try:
            value = self._source.read()
            return not isinstance(value, Mapping) and any(map(_is_locked, _worlds(value)))
        except BaseException as error:
            if must_propagate(error):
                raise
            return False  # the next sample counts the failure

    def _walk(self, worlds: Iterable[Any]) -> Counter[str]:
        counts: Counter[str] = Counter(dict.fromkeys(TYPES, 0))
        owned_types = self._owned_types()
        for world in worlds:
            for body in world.bodies:
                counts[self._type_of(body, owned_types)] += 1
        return counts

    def _type_of(self, body: Any, owned_types: dict[Any, str] | None) -> str:
        if self._classify is not None:
            kind = self._classify(body)
            if kind is not None:
                return kind if kind in TYPES else checked_name("body type", kind)
        if owned_types is not None and body in owned_types:
            return owned_types[body]
        if body.type == _STATIC:
            return "static"
        return "dynamic" if owned_types is None else "unknown"

    def _owned_types(self) -> dict[Any, str] | None:
        """The type of each owned body. Box2D's proxies compare and hash by their body."""
        if self._owners is None:
            return None
        groups = self._owners.read()
        if isinstance(groups, Mapping):
            return {
                body: checked_name("body type", kind) for kind, bodies in groups.items() for body in bodies
            }
        types: dict[Any, str] = {}
        for group in groups:
            for position, body in enumerate(group):
                types[body] = "dynamic" if position else "agent"
        return types


def _worlds(value: Any) -> list[Any]:
    return [value] if hasattr(value, "bodyCount") else list(value)


def _is_locked(world: Any) -> bool:
    try:
        return bool(getattr(world, "locked", False))
    except BaseException as error:
        if must_propagate(error):
            raise
        return False


class WalkerNames:
    """Repeats bodies, entities and memory as `walker_*`, for dashboards and scripts that use these names."""

    name = "walker_names"

    def __init__(self, readings: Callable[[], Readings], resident: Callable[[], int]) -> None:
        self._readings = readings
        self._resident = resident
        psutil.cpu_percent()  # the first call has no interval to measure

    def collect(self) -> Iterable[Metric]:
        """Yield the four families. They are gauges, in spite of the suffix `_total`."""
        readings = self._readings()
        bodies = readings.by("trainer_bodies", "type")
        entities = readings.by("trainer_entities", "type")
        if bodies:
            entities["world_bodies"] = sum(bodies.values())
        yield gauge("walker_body_types_total", "Physics bodies by type.", "type", bodies)
        yield gauge("walker_entities_total", "Bodies and food sources.", "type", entities)
        yield GaugeMetricFamily(
            "walker_system_memory_mb",
            "Resident memory of the trainer, in 1e6 bytes.",
            self._resident() / _MEGABYTE,
        )
        yield GaugeMetricFamily(
            "walker_system_cpu_percent",
            "CPU use of the whole machine since the last scrape; 100 is all cores.",
            psutil.cpu_percent(),
        )
