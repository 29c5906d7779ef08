"""Deep sizes of named objects: a policy's state, an optimizer, a dict of statistics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.named_sources import NamedSources
from heapwatch.collectors.off_heap import offheap_bytes
from heapwatch.measure.sizing.deep_size import Size, deep_size
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source


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
        self._latest = self._sources.read(self._measure)

    @staticmethod
    def _measure(_: str, obj: Any) -> Size:
        return obj if isinstance(obj, Size) else deep_size(obj)

    def collect(self) -> Iterable[Metric]:
        """Yield the sizes of the last sample."""
        latest = self._latest
        size = GaugeMetricFamily(
            "trainer_object_size_bytes", "Deep size of a named object.", labels=["object"]
        )
        error = GaugeMetricFamily(
            "trainer_object_size_error_bytes",
            "How far trainer_object_size_bytes may be off; 0 when all that it holds was seen.",
            labels=["object"],
        )
        for name, measured in latest.items():
            size.add_metric([name], measured.bytes)
            error.add_metric([name], measured.error_bytes)
        yield from (size, error, offheap_bytes("trainer_object_size", "object", latest))
