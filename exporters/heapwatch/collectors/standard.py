"""The Python client's own collectors: `process_*` and `python_*`."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector


class StandardCollector:
    """`process_start_time_seconds` and the other `process_*`, from a separate registry."""

    name = "standard"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """Yield the standard families."""
        return self._registry.collect()
