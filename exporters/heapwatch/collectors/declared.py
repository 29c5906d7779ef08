"""What a trainer declares by name: entities, event lists, and objects whose size is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from prometheus_client import Metric

from heapwatch.collectors.families import gauge, offheap_bytes
from heapwatch.measure.sizing.deep_size import Size, deep_size
from heapwatch.runtime.failures import Failures, is_trainers
from heapwatch.runtime.labels import MAX_DECLARED, MAX_NAMES, keep_largest
from heapwatch.runtime.sources import NoValue, Source, SourceGone, count_of

Value = TypeVar("Value")


class NamedSources:
    """The sources of one collector, at most `limit`; further ones are counted and not read.

    Each is read separately: a failure affects only the series of that source.
    """

    def __init__(self, collector: str, failures: Failures, limit: int = MAX_NAMES) -> None:
        self._limit = limit
        self._refused = 0
        self._collector = collector
        self._failures = failures
        self._sources: dict[str, Source] = {}
        self._gone: set[str] = set()

    def register(self, name: str, source: Source) -> None:
        """Read `source` as `name` from now on."""
        if len(self._sources) < self._limit:
            self._sources[name] = source
        else:
            self._refused += 1
            self._failures.record_left_out(self._collector, self._refused)

    def read(self, convert: Callable[[str, Any], Value]) -> dict[str, Value]:
        """The result of `convert` for each readable source. A source whose object died is counted once."""
        values = {}
        for name, source in list(self._sources.items()):
            try:
                values[name] = convert(name, source.read())
                self._gone.discard(name)
            except NoValue:
                continue
            except SourceGone as gone:
                if name not in self._gone:
                    self._gone.add(name)
                    self._failures.record(self._collector, name, gone)
            except BaseException as error:
                if is_trainers(error):
                    raise
                self._failures.record(self._collector, name, error)
        return values


class EntityCollector:
    """Counts sized containers, or calls functions that return a number."""

    name = "entities"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._failures = failures
        self._sources = NamedSources(self.name, failures, limit=MAX_DECLARED)
        self._latest: dict[str, float] = {}

    def count(self, name: str, source: Source) -> None:
        """Count `source` as type `name`."""
        self._sources.register(name, source)

    def sample(self) -> None:
        """Count each source."""
        self._latest, left_out = keep_largest(self._sources.read(self._count))
        self._failures.record_left_out(self.name, left_out)

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last sample."""
        yield gauge("trainer_entities", "Entities that the environment holds.", "type", self._latest)

    def _count(self, name: str, value: Any) -> float:
        return count_of(value)


class EventCollector(EntityCollector):
    """Counts the items of event lists.

    The bound is the declared capacity, else `maxlen`. It is kept: if a bounded deque is replaced by a plain
    list, the number of items rises above the exported capacity.
    """

    name = "events"

    def __init__(self, failures: Failures, interval: float) -> None:
        super().__init__(failures, interval)
        self._capacities: dict[str, int] = {}
        self._lengths: dict[str, int] = {}  # `maxlen`

    def count(self, name: str, source: Source, capacity: int | None = None) -> None:
        """Count the items of `source` as list `name`, which is to hold at most `capacity`."""
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
        """Measure `source` as object `name`; a `Size` that it returns is exported unchanged."""
        self._sources.register(name, source)

    def sample(self) -> None:
        """Measure each object."""
        self._latest = self._sources.read(
            lambda _, measured: measured if isinstance(measured, Size) else deep_size(measured)
        )

    def collect(self) -> Iterable[Metric]:
        """Yield the sizes of the last sample."""
        latest = self._latest
        yield gauge(
            "trainer_object_size_bytes",
            "Deep size of a named object.",
            "object",
            {name: size.bytes for name, size in latest.items()},
        )
        yield gauge(
            "trainer_object_size_error_bytes",
            "How far trainer_object_size_bytes may be off; 0 when all that it holds was seen.",
            "object",
            {name: size.error_bytes for name, size in latest.items()},
        )
        yield offheap_bytes("trainer_object_size", "object", latest)
