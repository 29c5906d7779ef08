"""The exporter's own metrics: its cost, its failures, the age of its samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.runtime.failures import Failures
from heapwatch.runtime.safe_point import SafePoint

# A collector that has once taken this long at a scrape has a series of its own.
_SLOW_SECONDS = 0.005


class ExporterCollector:
    """Reads the safe point's tasks and the exposition's timings.

    Args:
        failures: failures by collector.
        safe_point: the samplers and their costs.
        collect_seconds: seconds that each collector took at the last scrape.
        clock: clock of the safe point.

    """

    name = "exporter"

    def __init__(
        self,
        failures: Failures,
        safe_point: SafePoint,
        collect_seconds: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._safe_point = safe_point
        self._collect_seconds = collect_seconds
        self._clock = clock
        self._slow: set[str] = set()

    def collect(self) -> Iterable[Metric]:
        """Yield the exporter's own cost and failures."""
        yield from self._collections()
        yield from self._samples()
        budget = GaugeMetricFamily(
            "trainer_exporter_budget_ratio",
            "CPU seconds per second that all samplers together may take.",
        )
        budget.add_metric([], self._safe_point.budget)
        visit = GaugeMetricFamily(
            "trainer_exporter_safe_point_age_seconds",
            "Seconds since the trainer's thread last passed a safe point.",
        )
        age = self._safe_point.seconds_since_visit()
        if age is not None:
            visit.add_metric([], age)
        yield from (budget, visit)

    def _collections(self) -> Iterable[Metric]:
        took = _by_collector(
            "trainer_exporter_collect_seconds",
            "Seconds the collector took at the last scrape; `other` sums up those that never took long.",
        )
        errors = CounterMetricFamily(
            "trainer_exporter_collect_errors", "Failed reads of sources.", labels=["collector"]
        )
        names = _by_collector(
            "trainer_exporter_folded_names", "Names without their own series, because there are too many."
        )
        seconds = self._collect_seconds()
        self._slow |= {name for name, value in seconds.items() if value >= _SLOW_SECONDS}
        for name in sorted(self._slow):
            took.add_metric([name], seconds.get(name, 0.0))
        took.add_metric(["other"], sum(value for name, value in seconds.items() if name not in self._slow))
        # Samplers run code of the trainer. Their counts begin at zero, so that `increase` counts the first
        # failure.
        counts = {self.name: 0, **dict.fromkeys((task.sampler.name for task in self._safe_point.tasks), 0)}
        for name, count in (counts | self._failures.counts.copy()).items():
            errors.add_metric([name], count)
        for name, count in self._failures.left_out.copy().items():
            if count:
                names.add_metric([name], count)
        yield from (took, errors, names)

    def _samples(self) -> Iterable[Metric]:
        now = self._clock()
        age = _by_collector("trainer_exporter_sample_age_seconds", "Seconds since the last good sample.")
        spent = CounterMetricFamily(
            "trainer_exporter_sample_seconds",
            "CPU seconds that samples took of the trainer's own thread.",
            labels=["collector"],
        )
        interval = _by_collector(
            "trainer_exporter_sample_interval_seconds",
            "Seconds between samples; longer than configured if a sample costs more than its share.",
        )
        running = _by_collector(
            "trainer_exporter_sample_running_seconds",
            "Seconds that a sample which is running now has taken; the training loop waits for it.",
        )
        for task in self._safe_point.tasks:
            labels = [task.sampler.name]
            if task.sampled_at is not None:
                age.add_metric(labels, max(0.0, now - task.sampled_at))
            spent.add_metric(labels, task.total)
            interval.add_metric(labels, task.interval)
            since = task.running_since
            if since is not None:
                running.add_metric(labels, now - since)
        yield from (age, spent, interval, running)


def _by_collector(name: str, documentation: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, labels=["collector"])
