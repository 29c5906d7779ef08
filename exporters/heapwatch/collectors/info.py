"""Which trainer a process is."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.ranks import Rank


class InfoCollector:
    """A constant 1 with the trainer's names as labels."""

    name = "info"

    def __init__(self, trainer: str, framework: str, run: str, rank: Rank | None = None) -> None:
        self._labels = [trainer, framework, run, *(map(str, rank) if rank else ("", ""))]

    def collect(self) -> Iterable[Metric]:
        """Yield `trainer_info`."""
        family = GaugeMetricFamily(
            "trainer_info",
            "The names of this process; rank and world size are empty outside a distributed run.",
            labels=["trainer", "framework", "run", "rank", "world_size"],
        )
        family.add_metric(self._labels, 1)
        yield family
