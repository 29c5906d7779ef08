"""Number of entities in the environment, such as food sources, obstacles or orders."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.named_sources import NamedSources
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.labels import MAX_DECLARED, keep_largest
from heapwatch.runtime.sources import Source, count_of


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
        counts = self._sources.read(lambda _, value: count_of(value))
        kept, rest = keep_largest(counts)
        self._failures.record_left_out(self.name, rest)
        self._latest = kept

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last sample."""
        family = GaugeMetricFamily(
            "trainer_entities", "Entities that the environment holds.", labels=["type"]
        )
        for name, count in self._latest.items():
            family.add_metric([name], count)
        yield family
