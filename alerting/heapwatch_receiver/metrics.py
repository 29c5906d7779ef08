"""The receiver's own metrics: counters of this process, and gauges read from the ledger at each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

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
from heapwatch.runtime.labels import machine
from heapwatch_receiver.decide import CLEANUPS, REASONS, Refuse
from heapwatch_receiver.ledger import Action
from heapwatch_receiver.store import Store, StoreUnavailable

_CLEANUP_RESULTS = ("helped", "no_effect", "unverified", "refused", "failed", "pending", "dry_run")
_RESULTS = {
    **dict.fromkeys(CLEANUPS, _CLEANUP_RESULTS),
    "notify": ("notified", "failed", "dry_run"),
    "restart": ("restarted", "failed", "dry_run"),
}
_RECENT_SECONDS = 86400
_PREFIX = "heapwatch_receiver_"
_TRAINERS_JOB = "trainer"  # as prometheus.yml calls it
# The latest cleanup of each trainer, and whether it was in vain and its alert has not ended since.
_NO_EFFECT = """
    SELECT job, instance, result IN ('no_effect', 'failed', 'pending') AND NOT EXISTS (
        SELECT 1 FROM alerts WHERE alerts.fingerprint=latest.fingerprint
        AND alerts.starts_at=latest.starts_at AND status='resolved' AND alerts.id>latest.id
    )
    FROM (
        SELECT *, max(decided_at) FROM alerts
        WHERE action IN ('regular', 'emergency') AND finished_at>? GROUP BY job, instance
    ) AS latest
"""


class Metrics:
    """Counters and a histogram. Known label values start at zero, so that `increase` sees the first event."""

    def __init__(self, store: Store, lost_dirs: Iterable[Path] = ()) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(LedgerCollector(store))
        registry.register(MachineCollector())
        registry.register(LostCollector(lost_dirs))
        self.rejected = self._counter("requests_rejected", "Requests to POST /alerts not accepted.", "code")
        self.suppressed = self._counter("alerts_suppressed", "Alerts that no action followed.", "reason")
        self.actions = self._counter("actions", "Actions finished.", "action", "result")
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


def _gauge(name: str, text: str, labels: Sequence[str], rows: Iterable[Sequence[Any]]) -> Metric:
    """A family of gauges; a row has the values of the labels, then the number."""
    family = GaugeMetricFamily(_PREFIX + name, text, labels=labels)
    for *values, number in rows:
        family.add_metric(values, number)
    return family


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
        yield _gauge("ledger_readable", "1 when the database can be read.", [], [[len(families) > 0]])
        yield from families

    def _read(self) -> list[Metric]:
        with self._store.transaction() as connection:
            waiting = connection.execute(
                "SELECT count(*) FROM alerts WHERE decision IS NULL OR state<>'done'"
            ).fetchall()
            heartbeat = connection.execute("SELECT at FROM heartbeat").fetchall()
            since = time.time() - _RECENT_SECONDS
            no_effect = connection.execute(_NO_EFFECT, (since,)).fetchall()
        return [
            _gauge("queue_length", "Alerts and actions that wait to be finished.", [], waiting),
            _gauge(
                "last_watchdog_timestamp_seconds",
                "When the watchdog alert last came; before the first, when the ledger was made.",
                [],
                heartbeat,
            ),
            _gauge(
                "cleanup_no_effect",
                "1 when the trainer's last cleanup (of the last day) did not help, and its alert goes on.",
                ["trainer_job", "trainer_instance"],
                no_effect,
            ),
        ]


class MachineCollector(Collector):
    """The memory in use on this machine by all processes; the rules subtract that of the trainers."""

    def collect(self) -> Iterator[Metric]:
        """The current value; nothing if it cannot be read."""
        try:
            memory = psutil.virtual_memory()
        except (OSError, psutil.Error):
            return
        yield _gauge(
            "machine_memory_used_bytes",
            "Memory of this machine that no program could get: all of it less what is available.",
            ["machine"],
            [(machine(), memory.total - memory.available)],
        )


class LostCollector(Collector):
    """Trainers of the last day that ended unexpectedly."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    def collect(self) -> Iterator[Metric]:
        """Read the folders."""
        yield _gauge(
            "trainer_lost_timestamp_seconds",
            "When it was detected that a trainer had ended unexpectedly (of the last day).",
            ["trainer_job", "trainer_instance", "trainer", "cause"],
            [
                (_TRAINERS_JOB, one.address, one.trainer, one.cause, one.at)
                for folder in self._folders
                for one in lost.read(folder)
            ],
        )
