"""Who this trainer is."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily


class InfoCollector:
    """A constant 1 with the trainer's names as labels."""

    name = "info"

    def __init__(self, trainer: str, framework: str, run: str) -> None:
        self._labels = [trainer, framework, run]

    def collect(self) -> Iterable[Metric]:
        """Yield `trainer_info`."""
        family = GaugeMetricFamily("trainer_info", "Who this is.", labels=["trainer", "framework", "run"])
        family.add_metric(self._labels, 1)
        yield family
