"""Collects metrics from all collectors; one that fails or hangs affects only its own series."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder

from heapwatch.measure.gpu import allow_capture
from heapwatch.runtime.failures import Failures, must_propagate
from heapwatch.runtime.safe_point import SafePoint

# For all collectors of a scrape, within Prometheus' scrape_timeout of 10 s.
PATIENCE_SECONDS = 5.0


class Collector(Protocol):
    """Reads one source and yields its metric families, on the scrape thread.

    It reads values that are cheap or already sampled, and never touches live simulation objects. If a value
    cannot be read, its family is yielded without samples: the exposition leaves it out, and the metrics
    reference still lists it. A failure of one source among several goes to
    `heapwatch.runtime.failures.Failures`, and only that source's series are missing. An exception from
    `collect` removes all series of the collector.
    """

    name: str

    def collect(self) -> Iterable[Metric]:
        """Yield the families."""
        ...


class Exposition:
    """Yields every family that can be read, like a Prometheus registry.

    The collectors run in a helper thread. If one hangs, those after it are left out of this scrape; the next
    scrapes skip it until it returns.
    """

    def __init__(
        self, failures: Failures, safe_point: SafePoint, *, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.collect_seconds: dict[str, float] = {}
        self.collectors: tuple[Collector, ...] = ()
        self._failures = failures
        self._safe_point = safe_point
        self._patience = patience
        self._running: set[Collector] = set()

    def register(self, collector: Collector) -> None:
        """Add a collector; collectors run in the order of registration."""
        self.collectors = (*self.collectors, collector)

    def collect(self) -> list[Metric]:
        """The present families that have samples."""
        return [family for family in self.families() if family.samples]

    def families(self) -> list[Metric]:
        """The present families, including those without samples.

        Samplers that any thread may run are sampled first, until a training thread is known.
        """
        collectors = [collector for collector in self.collectors if collector not in self._running]
        families: list[Metric] = []
        is_abandoned = threading.Event()

        def work() -> None:
            allow_capture()
            self._safe_point.sample_unowned()
            for collector in collectors:
                if is_abandoned.is_set():
                    return
                self._running.add(collector)
                try:
                    families.extend(self.read(collector))
                finally:
                    self._running.discard(collector)

        thread = threading.Thread(target=work, name="heapwatch-collect", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads can be started
            work()
            return families
        thread.join(self._patience)
        if thread.is_alive():
            is_abandoned.set()
            for collector in self._running.intersection(collectors):
                error = TimeoutError(f"has not returned for {self._patience:g} s")
                self._failures.record(collector.name, "collect", error)
        return list(families)

    def read(self, collector: Collector) -> list[Metric]:
        """The families of one collector, with the samples that are finite numbers; none when it fails."""
        if self._safe_point.failed(collector):
            return []
        began = time.perf_counter()
        try:
            return [_without_nonfinite(family) for family in collector.collect()]
        except BaseException as error:
            if must_propagate(error):
                raise
            self._failures.record(collector.name, "collect", error)
            return []
        finally:
            self.collect_seconds[collector.name] = time.perf_counter() - began


def _without_nonfinite(family: Metric) -> Metric:
    """The family without non-finite samples; raises if a value is no number."""
    family.samples = [sample for sample in family.samples if math.isfinite(sample.value)]
    return family


class CollectionStuck(Exception):
    """A collector has not returned."""


class Snapshot:
    """The families of one collection."""

    def __init__(self, families: list[Metric]) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        """Return the families: encoders use a snapshot as a registry."""
        return self.families

    def encode(self, accept: str) -> tuple[bytes, str]:
        """Return the body and content type that an Accept header asks for."""
        encoder, content_type = choose_encoder(accept)
        return encoder(self), content_type


class Snapshots:
    """Collects on demand: a thousand concurrent scrapes cost the trainer a few collections."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._collecting = threading.Lock()
        self._began_at = float("-inf")
        self._latest = Snapshot([])

    def recent(self, age: float, *, timeout: float) -> Snapshot:
        """Return the latest snapshot, or a new one if its collection began more than `age` seconds ago.

        Raises:
            CollectionStuck: a collection did not end in time.

        """
        return self._latest if time.monotonic() - self._began_at <= age else self.take(timeout)

    def take(self, timeout: float) -> Snapshot:
        """Return a snapshot whose collection began after this call.

        Args:
            timeout: how long to wait for another thread's collection, in seconds.

        Raises:
            CollectionStuck: that collection did not end in time.

        """
        called_at = time.monotonic()
        if not self._collecting.acquire(timeout=timeout):
            seconds = time.monotonic() - self._began_at
            raise CollectionStuck(f"a collector has been running for {seconds:.0f} s; see its watched source")
        try:
            if self._began_at < called_at:
                self._began_at = time.monotonic()
                self._latest = Snapshot(list(self._exposition.collect()))
            return self._latest
        except BaseException:
            self._began_at = float("-inf")  # nothing to share
            raise
        finally:
            self._collecting.release()
