"""Collects metrics from all collectors; one that fails or hangs affects only its own series."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder

from heapwatch.measure.gpu import allow_capture
from heapwatch.runtime.failures import Failures, must_propagate
from heapwatch.runtime.safe_point import SafePoint

# Timeout of one collector in a scrape.
PATIENCE_SECONDS = 3.0


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

    The collectors run in a helper thread. If one exceeds its timeout, another thread continues with the next
    one, and scrapes skip it until it returns.
    """

    def __init__(
        self,
        failures: Failures,
        safe_point: SafePoint,
        *,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.collect_seconds: dict[str, float] = {}
        self.collectors: tuple[Collector, ...] = ()
        self._failures = failures
        self._safe_point = safe_point
        self._patience = patience
        self._clock = clock
        self._running: set[Collector] = set()
        self._unowned = _UnownedSamples(safe_point)

    def register(self, collector: Collector) -> None:
        """Add a collector; collectors run in the order of registration."""
        self.collectors = (*self.collectors, collector)

    def collect(self) -> list[Metric]:
        """The present families that have samples."""
        return [family for family in self.families() if family.samples]

    def families(self) -> list[Metric]:
        """The present families, including those without samples."""
        families: list[Metric] = []
        waiting = deque((self._unowned, *self.collectors))
        while waiting:
            families += self._collect_until_stuck(waiting)
        return families

    def _collect_until_stuck(self, waiting: deque[Collector]) -> list[Metric]:
        """Run the waiting collectors in a helper thread, until none is left or one exceeds its timeout."""
        results: SimpleQueue[list[Metric] | None] = SimpleQueue()
        stuck = threading.Event()
        batch = [collector for collector in waiting if collector not in self._running]

        def work() -> None:
            allow_capture()
            try:
                for collector in batch:
                    if stuck.is_set():
                        return
                    self._running.add(collector)
                    try:
                        results.put(self.read(collector))
                    finally:
                        self._running.discard(collector)
            finally:
                results.put(None)

        try:
            threading.Thread(target=work, name="heapwatch-collect", daemon=True).start()
        except RuntimeError:  # no more threads can be started
            work()
        waiting.clear()
        families: list[Metric] = []
        for at, collector in enumerate(batch):
            try:
                collected = results.get(timeout=self._patience)
            except Empty:
                stuck.set()
                waiting.extend(batch[at + 1 :])
                error = TimeoutError(f"has not returned for {self._patience:g} s")
                self._failures.record(collector.name, "collect", error)
                break
            if collected is None:  # the thread was ended in this collector
                waiting.extend(batch[at + 1 :])
                break
            families += collected
        return families

    def read(self, collector: Collector) -> list[Metric]:
        """The families of one collector, with the samples that are finite numbers; none when it fails."""
        if self._safe_point.failed(collector):
            return []
        began = self._clock()
        try:
            return [_without_nonfinite(family) for family in collector.collect()]
        except BaseException as error:
            if must_propagate(error):
                raise
            self._failures.record(collector.name, "collect", error)
            return []
        finally:
            self.collect_seconds[collector.name] = self._clock() - began


class _UnownedSamples:
    """Runs samplers that allow it in the scrape thread, until a training thread is known."""

    name = "unowned_samples"

    def __init__(self, safe_point: SafePoint) -> None:
        self._safe_point = safe_point

    def collect(self) -> Iterable[Metric]:
        """Yield nothing: the samplers' own collectors do."""
        self._safe_point.sample_unowned()
        return ()


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
