"""The receiver's own metrics: counters of this process, and gauges read from the ledger at each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from heapwatch import lost
from heapwatch.runtime.labels import MAX_NAMES, OTHER, machine
from heapwatch_receiver.decide import REASONS, Refuse
from heapwatch_receiver.ledger import Action
from heapwatch_receiver.store import Store, StoreUnavailable

_CLEANUP_RESULTS = (
    "helped", "no_effect", "unverified", "refused", "failed", "pending", "dry_run",
)  # fmt: skip
_RESULTS = {
    "regular": _CLEANUP_RESULTS,
    "emergency": _CLEANUP_RESULTS,
    "notify": ("notified", "failed", "dry_run"),
    "restart": ("restarted", "failed", "dry_run"),
}
_RECENT_SECONDS = 86400
_PREFIX = "heapwatch_receiver_"
_TRAINERS_JOB = "trainer"  # as prometheus.yml calls it


class Metrics:
    """Counters and a histogram. Known label values start at zero, so that `increase` sees the first event."""

    def __init__(self, store: Store, lost_dirs: Iterable[Path] = ()) -> None:
        self.registry = registry = CollectorRegistry()
        self._resources: set[str] = set()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(LedgerCollector(store))
        registry.register(MachineCollector())
        registry.register(LostCollector(lost_dirs))
        self.received = self._counter("alerts_received", "Alerts written down.")
        self.rejected = self._counter("requests_rejected", "Requests to POST /alerts not accepted.", "code")
        self.suppressed = self._counter("alerts_suppressed", "Alerts that no action followed.", "reason")
        self.actions = self._counter("actions", "Actions finished.", "action", "result")
        self.freed = self._counter("freed_bytes", "Memory that came back, by the trainers.", "action")
        self.removed = self._counter("removed", "Things that cleanups removed.", "action", "resource")
        self.annotation_errors = self._counter("annotation_errors", "Annotations that Grafana did not take.")
        self.alert_to_effect = Histogram(
            _PREFIX + "alert_to_effect_seconds",
            "From an alert's receipt to the verdict on its cleanup.",
            buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1200),
            registry=registry,
        )
        for reason in REASONS:
            self.suppressed.labels(reason)
        for action, results in _RESULTS.items():
            for result in results:
                self.actions.labels(action, result)
        for action in ("regular", "emergency"):
            self.freed.labels(action)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def refused(self, refusals: Iterable[Refuse]) -> None:
        """Count alerts without an action."""
        for refusal in refusals:
            self.suppressed.labels(refusal.reason).inc()

    def finished(self, action: Action, seconds: float) -> None:
        """Count an action that ended `seconds` after its alert was received."""
        self.actions.labels(action.action, action.result).inc()
        if action.result in ("helped", "no_effect", "unverified"):
            self.alert_to_effect.observe(seconds)
            self.freed.labels(action.action).inc(max(0.0, action.freed_bytes or 0.0))
            for resource, count in action.removed.items():
                self.removed.labels(action.action, self._admitted(resource)).inc(max(0.0, count))

    def _admitted(self, resource: str) -> str:
        """The resource as a label value, or `other` once there are many: trainers choose these names."""
        if len(self._resources) < MAX_NAMES:
            self._resources.add(resource)
        return resource if resource in self._resources else OTHER


class LedgerCollector(Collector):
    """Gauges from the database. If it cannot be read, they are absent and `ledger_readable` is 0."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Read the gauges from the ledger."""
        try:
            families = self._read()
        except StoreUnavailable:
            families = []
        yield GaugeMetricFamily(
            _PREFIX + "ledger_readable", "1 when the database can be read.", value=float(bool(families))
        )
        yield from families

    def _read(self) -> list[Metric]:
        queue = GaugeMetricFamily(_PREFIX + "queue_length", "Alerts and actions that wait to be finished.")
        rows_kept = GaugeMetricFamily(_PREFIX + "ledger_rows", "Decisions kept for the audit.")
        watchdog = GaugeMetricFamily(
            _PREFIX + "last_watchdog_timestamp_seconds",
            "When the watchdog alert last came; before the first, when the ledger was made.",
        )
        trainer_labels = ["trainer_job", "trainer_instance"]
        last = GaugeMetricFamily(
            _PREFIX + "last_action_timestamp_seconds",
            "When an action on the trainer was last finished (of the last day).",
            labels=[*trainer_labels, "action"],
        )
        no_effect = GaugeMetricFamily(
            _PREFIX + "cleanup_no_effect",
            "1 when the trainer's last cleanup (of the last day) did not help, and its alert has not ended.",
            labels=trainer_labels,
        )
        with self._store.transaction() as connection:
            waiting, kept, beat = connection.execute(
                "SELECT count(*) FILTER (WHERE decision IS NULL OR state<>'done'), count(*),"
                " (SELECT at FROM heartbeat) FROM alerts"
            ).fetchone()
            queue.add_metric([], waiting)
            rows_kept.add_metric([], kept)
            watchdog.add_metric([], beat)
            since = (time.time() - _RECENT_SECONDS,)
            for job, instance, action, finished in connection.execute(
                "SELECT job, instance, action, max(finished_at) FROM alerts"
                " WHERE action IS NOT NULL AND finished_at>? GROUP BY 1, 2, 3",
                since,
            ):
                last.add_metric([job, instance, action], finished)
            for job, instance, useless in connection.execute(
                "SELECT job, instance, result IN ('no_effect', 'failed', 'pending') AND NOT EXISTS"
                " (SELECT 1 FROM alerts WHERE alerts.fingerprint=latest.fingerprint"
                "  AND alerts.starts_at=latest.starts_at AND status='resolved' AND alerts.id>latest.id)"
                " FROM (SELECT *, max(decided_at) FROM alerts WHERE action IN ('regular', 'emergency')"
                "  AND finished_at>? GROUP BY job, instance) AS latest",
                since,
            ):
                no_effect.add_metric([job, instance], useless)
        return [queue, rows_kept, watchdog, last, no_effect]


class MachineCollector(Collector):
    """The memory in use on this machine by all processes; the rules subtract that of the trainers."""

    def collect(self) -> Iterator[Metric]:
        """The current value; nothing if it cannot be read."""
        try:
            memory = psutil.virtual_memory()
        except (OSError, psutil.Error):
            return
        used = GaugeMetricFamily(
            _PREFIX + "machine_memory_used_bytes",
            "Memory of this machine that no program could get: all of it less what is available.",
            labels=["machine"],
        )
        used.add_metric([machine()], memory.total - memory.available)
        yield used


class LostCollector(Collector):
    """Trainers of the last day that ended unexpectedly."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    def collect(self) -> Iterator[Metric]:
        """Read the folders."""
        family = GaugeMetricFamily(
            _PREFIX + "trainer_lost_timestamp_seconds",
            "When it was detected that a trainer had ended unexpectedly (of the last day).",
            labels=["trainer_job", "trainer_instance", "trainer", "cause"],
        )
        for one in (one for folder in self._folders for one in lost.read(folder)):
            family.add_metric([_TRAINERS_JOB, one.address, one.trainer, one.cause], one.at)
        yield family
