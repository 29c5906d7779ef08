"""How many instances of the watched classes are alive."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.instances import Census


class ObjectCollector:
    """Takes a census at safe points. It stalls training; the safe point measures that and limits its rate."""

    name = "objects"

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._census = Census()
        self._latest: dict[str, float] = {}

    def count(self, *classes: type) -> None:
        """Count live instances of `classes`, subclasses included.

        Raises:
            ValueError: something is no class.

        """
        for cls in classes:
            if not isinstance(cls, type):
                raise ValueError(f"objects takes classes, got {cls!r}")
        for cls in classes:
            self._census.count(cls)

    def sample(self) -> None:
        """Take a census."""
        self._latest = self._census.take()

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last census."""
        objects = GaugeMetricFamily("trainer_objects", "Live instances of a watched class.", labels=["type"])
        for name, count in self._latest.items():
            objects.add_metric([name], count)
        yield objects
