"""Number of live instances of the watched classes."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterable

from prometheus_client import Metric

from heapwatch.collectors.families import gauge
from heapwatch.measure.objects.instances import Census, InstanceCounter

log = logging.getLogger("heapwatch")


class ObjectCollector:
    """Counts instances at safe points. This pauses training, so the safe point limits its rate."""

    name = "objects"

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._census = InstanceCounter()
        self.latest = Census({})
        self._expected: dict[str, int] = {}
        self._most_said: dict[str, float] = {}

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

    def expect(self, cls: type, count: int) -> str:
        """Count `cls`, and warn when a census finds more than `count`; returns its name in the counts."""
        self.count(cls)
        name = self._census.name_of(cls)
        self._expected[name] = count
        return name

    def sample(self) -> None:
        """Take a census."""
        self.latest = Census(self._census.take(), round(time.time(), 3))
        if any(self._is_news(name) for name in self._expected):
            gc.collect()  # unreachable objects must not count as alive
            self.latest = Census(self._census.take(), round(time.time(), 3))
        for name, expected in self._expected.items():
            alive = self.latest.counts.get(name, 0)
            if self._is_news(name):
                log.warning("%s: %d are alive, %d expected", name, alive, expected)
                self._most_said[name] = alive
            elif alive <= expected:
                self._most_said.pop(name, None)

    def _is_news(self, name: str) -> bool:
        """Whether more are alive than expected, and twice as many as at the last warning."""
        alive = self.latest.counts.get(name, 0)
        return alive > self._expected[name] and alive >= 2 * self._most_said.get(name, 0)

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last census."""
        yield gauge("trainer_objects", "Live instances of a watched class.", "type", self.latest.counts)
