"""The exporter's own metrics: its cleanups, its cost, its failures, the age of its samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

from heapwatch.collectors.families import counter, gauge, gauges
from heapwatch.runtime.cleanup import ACTIONS, CleanupQueue
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.safe_point import SafePoint

# A collector that has taken this long in any scrape gets a series of its own.
_SLOW_SECONDS = 0.005


class CleanupCollector:
    """Reads the counts of the cleanup queue.

    `ready` returns whether a cleanup can be requested over HTTP, which needs a token.
    """

    name = "cleanups"

    def __init__(self, queue: CleanupQueue, ready: Callable[[], bool]) -> None:
        self._queue = queue
        self._is_ready = ready

    def collect(self) -> Iterable[Metric]:
        """Yield the counts; they start at 0, so that `increase` counts the first cleanup."""
        queue = self._queue
        yield counter(
            "trainer_cleanups",
            "Cleanups done.",
            ("action", "trigger"),
            {(action, "http"): 0 for action in ACTIONS} | queue.cleanups,
        )
        yield counter(
            "trainer_cleanup_freed_bytes",
            "Resident bytes freed by cleanups.",
            "action",
            {action: queue.freed_bytes[action] for action in ACTIONS},
        )
        yield counter(
            "trainer_cleanup_removed",
            "Items that cleanup functions report as removed.",
            ("action", "resource"),
            queue.removed.copy(),
        )
        duration = SummaryMetricFamily(
            "trainer_cleanup_duration_seconds", "Seconds a cleanup took.", labels=["action"]
        )
        for action in ACTIONS:
            duration.add_metric([action], *queue.durations.get(action, (0, 0.0)))
        yield duration
        yield GaugeMetricFamily(
            "trainer_cleanup_functions", "Functions of the trainer that a cleanup calls.", queue.functions()
        )
        yield GaugeMetricFamily(
            "trainer_cleanup_ready",
            "1 when a cleanup can be requested, as there is a token; else 0.",
            float(self._is_ready()),
        )


class ExporterCollector:
    """Reads the safe point's tasks and the exposition's timings.

    `collect_seconds` returns the seconds of each collector at the last scrape.
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
        yield GaugeMetricFamily(
            "trainer_exporter_budget_ratio",
            "CPU seconds per second that all samplers together may take.",
            self._safe_point.budget,
        )
        yield GaugeMetricFamily(
            "trainer_exporter_safe_point_age_seconds",
            "Seconds since the trainer's thread last passed a safe point.",
            self._safe_point.seconds_since_visit(),
        )

    def _collections(self) -> Iterable[Metric]:
        seconds = self._collect_seconds()
        self._slow |= {name for name, value in seconds.items() if value >= _SLOW_SECONDS}
        other_seconds = sum(value for name, value in seconds.items() if name not in self._slow)
        yield gauge(
            "trainer_exporter_collect_seconds",
            "Seconds the collector took at the last scrape; `other` sums up those that never took long.",
            "collector",
            {name: seconds.get(name, 0.0) for name in sorted(self._slow)} | {"other": other_seconds},
        )
        # Samplers run code of the trainer. Their counts begin at zero, so that `increase` counts the first
        # failure.
        counts = {self.name: 0, **dict.fromkeys((task.sampler.name for task in self._safe_point.tasks), 0)}
        yield counter(
            "trainer_exporter_collect_errors",
            "Failed reads of sources.",
            "collector",
            counts | self._failures.counts.copy(),
        )

    def _samples(self) -> Iterable[Metric]:
        now = self._clock()
        tasks = {task.sampler.name: task for task in self._safe_point.tasks}
        yield from gauges(
            "collector",
            tasks,
            (
                "trainer_exporter_sample_age_seconds",
                "Seconds since the last good sample.",
                lambda task: None if (at := task.sampled_at) is None else max(0.0, now - at),
            ),
            (
                "trainer_exporter_sample_interval_seconds",
                "Seconds between samples; longer than configured if a sample costs more than its share.",
                lambda task: task.interval,
            ),
        )
        yield counter(
            "trainer_exporter_sample_seconds",
            "CPU seconds that samples took of the trainer's own thread.",
            "collector",
            {name: task.total for name, task in tasks.items()},
        )
