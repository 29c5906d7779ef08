"""Counts and effects of cleanups so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from heapwatch.runtime.cleanup import ACTIONS, CleanupQueue

_NONE_YET = {(action, "http"): 0 for action in ACTIONS}


class CleanupCollector:
    """Reads the counts of the cleanup queue.

    Args:
        queue: cleanup queue of the trainer.
        ready: whether a cleanup can be requested over HTTP, which needs a token.

    """

    name = "cleanups"

    def __init__(self, queue: CleanupQueue, ready: Callable[[], bool]) -> None:
        self._queue = queue
        self._ready = ready

    def collect(self) -> Iterable[Metric]:
        """Yield the counts; they start at 0, so that `increase` counts the first cleanup."""
        queue = self._queue
        done = CounterMetricFamily("trainer_cleanups", "Cleanups done.", labels=["action", "trigger"])
        freed = CounterMetricFamily(
            "trainer_cleanup_freed_bytes", "Resident bytes freed by cleanups.", labels=["action"]
        )
        removed = CounterMetricFamily(
            "trainer_cleanup_removed",
            "Items that cleanup functions report as removed.",
            labels=["action", "resource"],
        )
        duration = SummaryMetricFamily(
            "trainer_cleanup_duration_seconds", "Seconds a cleanup took.", labels=["action"]
        )
        pending = GaugeMetricFamily("trainer_cleanups_pending", "Cleanups that wait for a safe point.")
        functions = GaugeMetricFamily(
            "trainer_cleanup_functions", "Functions of the trainer that a cleanup calls."
        )
        ready = GaugeMetricFamily(
            "trainer_cleanup_ready",
            "1 when a cleanup can be requested, as there is a token; else 0.",
        )
        for labels, count in (_NONE_YET | queue.cleanups).items():
            done.add_metric(labels, count)
        for action in ACTIONS:
            freed.add_metric([action], queue.freed_bytes[action])
            times, seconds = queue.durations.get(action, (0, 0.0))
            duration.add_metric([action], times, seconds)
        for labels, count in queue.removed.copy().items():
            removed.add_metric(labels, count)
        pending.add_metric([], queue.pending())
        functions.add_metric([], queue.functions())
        ready.add_metric([], float(self._ready()))
        yield from (done, freed, removed, duration, pending, functions, ready)
