"""Length of event lists, and the bounds that they declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.named_sources import NamedSources
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.labels import MAX_DECLARED, keep_largest
from heapwatch.runtime.sources import Source, count_of


class EventCollector:
    """Counts the items of event lists.

    The bound is the declared capacity, else `maxlen`. It is kept: if a bounded deque is replaced by a plain
    list, the number of items rises above the exported capacity.
    """

    name = "events"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._failures = failures
        self._sources = NamedSources(self.name, failures, limit=MAX_DECLARED)
        self._capacities: dict[str, int] = {}
        self._declared: dict[str, int] = {}
        self._latest: tuple[dict[str, float], dict[str, int]] = ({}, {})

    def count(self, name: str, source: Source, capacity: int | None = None) -> None:
        """Count the items of `source` as list `name`.

        Args:
            name: value of the label `list`.
            source: a sized container, or a function that returns one or a number.
            capacity: largest intended number of items; by default its `maxlen`.

        """
        if capacity is not None:
            self._capacities[name] = capacity
        self._sources.register(name, source)

    def sample(self) -> None:
        """Count each list."""
        counts = self._sources.read(self._count)
        kept, rest = keep_largest(counts)
        self._failures.record_left_out(self.name, rest)
        bounds = {**self._declared, **self._capacities}
        self._latest = kept, {name: bounds[name] for name in kept if name in bounds}

    def collect(self) -> Iterable[Metric]:
        """Yield items and capacities of the last sample."""
        counts, bounds = self._latest
        items = GaugeMetricFamily("trainer_event_list_items", "Items in an event list.", labels=["list"])
        for name, count in counts.items():
            items.add_metric([name], count)
        capacity = GaugeMetricFamily(
            "trainer_event_list_capacity_items",
            "Most items that an event list may hold; absent if it declared no bound.",
            labels=["list"],
        )
        for name, bound in bounds.items():
            capacity.add_metric([name], bound)
        yield from (items, capacity)

    def _count(self, name: str, value: Any) -> float:
        count = count_of(value)
        maxlen = getattr(value, "maxlen", None)
        if isinstance(maxlen, int):
            self._declared[name] = maxlen
        return count
