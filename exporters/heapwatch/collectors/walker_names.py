"""The metric names of the Walker system, for dashboards and scripts that still use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import psutil
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.analysis.readings import Readings
from heapwatch.collectors.families import gauge

_MEGABYTE = 1e6


class WalkerNames:
    """Repeats bodies, entities and memory under the `walker_*` names."""

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
