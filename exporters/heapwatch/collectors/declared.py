"""Collectors of declared sources: entities, event lists, sizes of objects, instances of classes."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from statistics import median
from typing import Any, TypeVar

from prometheus_client import Metric

from heapwatch.collectors.families import gauge, gauges, offheap_bytes
from heapwatch.measure.objects.instances import Census, InstanceCounter
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.deep_size import Size, deep_size
from heapwatch.runtime.failures import Failures, must_propagate
from heapwatch.runtime.labels import MAX_NAMES
from heapwatch.runtime.sources import NoValue, Source, SourceGone, count_of

log = logging.getLogger("heapwatch")

Value = TypeVar("Value")

# Seconds of a count per memory block of Python on a slow machine: of classes that the garbage collector
# tracks, and of others.
_RATE, _SLOW_RATE = 100e-9, 1e-6
_RATES = 5  # last counts whose median rate predicts the next one: the machine may have been busy


class NamedSources:
    """The sources of one collector, at most MAX_NAMES; ignores and reports further ones.

    Each is read separately: a failure affects only the series of that source.
    """

    def __init__(self, collector: str, failures: Failures) -> None:
        self._collector = collector
        self._failures = failures
        self._sources: dict[str, Source] = {}
        self._gone_names: set[str] = set()

    def register(self, name: str, source: Source) -> None:
        """Read `source` as `name` from now on."""
        if len(self._sources) < MAX_NAMES:
            self._sources[name] = source
        else:
            self._failures.record_left_out(self._collector)

    def read(self, convert: Callable[[str, Any], Value]) -> dict[str, Value]:
        """The result of `convert` for each readable source. A freed object counts as one failure."""
        values = {}
        for name, source in list(self._sources.items()):
            try:
                values[name] = convert(name, source.read())
                self._gone_names.discard(name)
            except NoValue:
                continue
            except SourceGone as error:
                if name not in self._gone_names:
                    self._gone_names.add(name)
                    self._failures.record(self._collector, name, error)
            except BaseException as error:
                if must_propagate(error):
                    raise
                self._failures.record(self._collector, name, error)
        return values


class EntityCollector:
    """Counts sized containers, or calls functions that return a number."""

    name = "entities"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._sources = NamedSources(self.name, failures)
        self._latest: dict[str, float] = {}

    def count(self, name: str, source: Source) -> None:
        """Count `source` as type `name`."""
        self._sources.register(name, source)

    def sample(self) -> None:
        """Count each source."""
        self._latest = self._sources.read(self._count)

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last sample."""
        yield gauge("trainer_entities", "Entities that the environment holds.", "type", self._latest)

    def _count(self, name: str, value: Any) -> float:
        return count_of(value)


class EventCollector(EntityCollector):
    """Counts the items of event lists.

    The bound is the declared capacity, else `maxlen`. It stays: if the program replaces a bounded deque by a
    plain list, the number of items rises above the exported capacity.
    """

    name = "events"

    def __init__(self, failures: Failures, interval: float) -> None:
        super().__init__(failures, interval)
        self._capacities: dict[str, int] = {}
        self._lengths: dict[str, int] = {}  # `maxlen`

    def count(self, name: str, source: Source, capacity: int | None = None) -> None:
        """Count the items of `source` as list `name` with at most `capacity` items."""
        if capacity is not None:
            self._capacities[name] = capacity
        super().count(name, source)

    def collect(self) -> Iterable[Metric]:
        """Yield items and capacities of the last sample."""
        counts = self._latest
        yield gauge("trainer_event_list_items", "Items in an event list.", "list", counts)
        yield gauge(
            "trainer_event_list_capacity_items",
            "Most items that an event list may hold; absent if it declared no bound.",
            "list",
            {name: self._capacities.get(name, self._lengths.get(name)) for name in counts},
        )

    def _count(self, name: str, value: Any) -> float:
        count = count_of(value)
        maxlen = getattr(value, "maxlen", None)
        if isinstance(maxlen, int):
            self._lengths[name] = maxlen
        return count


class SizeCollector:
    """Measures named objects at safe points."""

    name = "sizes"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._sources = NamedSources(self.name, failures)
        self._latest: dict[str, Size] = {}

    def measure(self, name: str, source: Source) -> None:
        """Measure `source` as object `name`."""
        self._sources.register(name, source)

    def sample(self) -> None:
        """Measure each object."""
        self._latest = self._sources.read(lambda _, measured: deep_size(measured))

    def collect(self) -> Iterable[Metric]:
        """Yield the sizes of the last sample."""
        latest = self._latest
        error = "How far trainer_object_size_bytes may be off; 0 when all that it holds was seen."
        yield from gauges(
            "object",
            latest,
            ("trainer_object_size_bytes", "Deep size of a named object.", lambda size: size.bytes),
            ("trainer_object_size_error_bytes", error, lambda size: size.error_bytes),
        )
        yield offheap_bytes("trainer_object_size", "object", latest)


class InstanceSampler:
    """Counts instances of classes that the garbage collector tracks, or of classes that it does not track.

    Args:
        name: name of the sampler.
        interval: least seconds between counts.
        take: counts the instances now, by class.
        first_rate: assumed cost before the first count, in seconds per memory block of Python.

    Attributes:
        counts: the last counts by class; empty if the last count failed.
        counted_at: time of the last count, in Unix time in seconds; None before the first.

    """

    def __init__(
        self, name: str, interval: float, take: Callable[[], dict[str, float]], first_rate: float
    ) -> None:
        self.name = name
        self.interval = interval
        self.counts: dict[str, float] = {}
        self.counted_at: float | None = None
        self._take = take
        self._first_rate = first_rate
        self._rates: deque[float] = deque(maxlen=_RATES)

    def sample(self) -> None:
        """Count the instances. This stops the whole program meanwhile."""
        began = own_time()
        try:
            self.counts = self._take()
        except BaseException:
            self.counts = {}
            raise
        self.counted_at = time.time()
        self._rates.append((own_time() - began) / max(1, sys.getallocatedblocks()))

    def expected_seconds(self) -> float:
        """Predicted CPU seconds of a count now, from the last counts."""
        return median(self._rates or [self._first_rate]) * sys.getallocatedblocks()


class ObjectCollector:
    """Counts instances at safe points, and at checkpoints. This pauses training.

    One sampler counts classes that the garbage collector tracks, which is fast; another counts the others.
    """

    name = "objects"

    def __init__(self, interval: float) -> None:
        self._counter = InstanceCounter()
        self._expected: dict[str, int] = {}
        self._last_warned: dict[str, float] = {}
        self._samplers = {
            True: InstanceSampler("objects", interval, partial(self._count, True), _RATE),
            False: InstanceSampler("untracked_objects", interval, partial(self._count, False), _SLOW_RATE),
        }

    @property
    def samplers(self) -> list[InstanceSampler]:
        """The samplers with classes to count, the faster one first."""
        return [sampler for tracked, sampler in self._samplers.items() if self._counter.has(tracked=tracked)]

    @property
    def latest(self) -> Census:
        """The last counts."""
        with_counts = [sampler for sampler in self._samplers.values() if sampler.counted_at is not None]
        return Census(
            {name: count for sampler in with_counts for name, count in sampler.counts.items()},
            {
                name: sampler.counted_at
                for sampler in with_counts
                for name in sampler.counts
                if sampler.counted_at is not None
            },
        )

    def count(self, *classes: type) -> list[str]:
        """Count live instances of `classes`, subclasses included; returns their names in the counts.

        Raises:
            ValueError: something is no class.

        """
        for cls in classes:
            if not isinstance(cls, type):
                raise ValueError(f"objects takes classes, got {cls!r}")
        return [self._counter.count(cls) for cls in classes]

    def expect(self, cls: type, count: int) -> str:
        """Count `cls`, and warn if there are more than `count` instances; returns its name in the counts."""
        (name,) = self.count(cls)
        self._expected[name] = count
        return name

    def not_counted_since(self, moment: float, seconds: float) -> list[InstanceSampler]:
        """Samplers without a count since `moment` that together take at most `seconds`."""
        selected = []
        for sampler in self.samplers:
            cost = sampler.expected_seconds()
            if (sampler.counted_at is None or sampler.counted_at < moment) and cost <= seconds:
                seconds -= cost
                selected.append(sampler)
        return selected

    def collect(self) -> Iterable[Metric]:
        """Yield the last counts, and their ages."""
        latest, now = self.latest, time.time()
        yield gauge("trainer_objects", "Live instances of a watched class.", "type", latest.counts)
        yield gauge(
            "trainer_objects_age_seconds",
            "Seconds since the instances of a watched class were counted.",
            "type",
            {name: max(0.0, now - at) for name, at in latest.at.items()},
        )

    def _count(self, tracked: bool) -> dict[str, float]:
        counts = self._counter.take(tracked=tracked)
        if any(self._is_news(name, counts) for name in self._expected):
            gc.collect()  # unreachable objects must not count as alive
            counts = self._counter.take(tracked=tracked)
        for name, limit in self._expected.items():
            if self._is_news(name, counts):
                log.warning("%s: %d are alive, %d expected", name, counts[name], limit)
                self._last_warned[name] = counts[name]
            elif name in counts and counts[name] <= limit:
                self._last_warned.pop(name, None)
        return counts

    def _is_news(self, name: str, counts: Mapping[str, float]) -> bool:
        """Whether more instances are alive than expected, and twice as many as at the last warning."""
        alive = counts.get(name, 0)
        return alive > self._expected[name] and alive >= 2 * self._last_warned.get(name, 0)
