"""Collects from all collectors, isolated from each other: one that fails or hangs affects only its series."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from prometheus_client import Metric

from heapwatch.runtime.failures import Failures, is_trainers
from heapwatch.runtime.protocols import Collector
from heapwatch.runtime.safe_point import SafePoint

# Seconds that a scrape waits for a collector that does not return.
PATIENCE_SECONDS = 3.0


class Exposition:
    """Yields every family that can be read, like a Prometheus registry.

    The collectors run in a helper thread. If one does not return in time, the scrape continues with the next
    one. It is left out until it returns.
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
        self._stuck: set[Collector] = set()
        self._unowned = _UnownedSamples(safe_point)

    def register(self, collector: Collector) -> None:
        """Collect `collector` from now on, after those added before it."""
        self.collectors = (*self.collectors, collector)

    def collect(self) -> list[Metric]:
        """The present families that have samples."""
        return [family for family in self.families() if family.samples]

    def families(self) -> list[Metric]:
        """The present families, including those without samples."""
        families: list[Metric] = []
        wanted = (self._unowned, *self.collectors)
        waiting = deque(collector for collector in wanted if collector not in self._stuck)
        while waiting:
            turn = _Turn(waiting, self.read, self._stuck)
            families += turn.take(self._patience)
            if turn.stuck is not None:
                error = TimeoutError(f"has not returned for {self._patience:g} s")
                self._failures.record(turn.stuck.name, "collect", error)
        return families

    def read(self, collector: Collector) -> list[Metric]:
        """The families of one collector, with the samples that are finite numbers; none when it fails."""
        if self._safe_point.failed(collector):
            return []
        began = self._clock()
        try:
            return [_checked(family) for family in collector.collect()]
        except BaseException as error:
            if is_trainers(error):
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


class _Turn:
    """A helper thread that runs the waiting collectors until all are done or one hangs."""

    def __init__(
        self,
        waiting: deque[Collector],
        read: Callable[[Collector], list[Metric]],
        left_out: set[Collector],
    ) -> None:
        self.stuck: Collector | None = None
        self._waiting = waiting
        self._read = read
        self._left_out = left_out
        self._families: list[Metric] = []
        self._current: Collector | None = None
        self._changing = threading.Lock()

    def take(self, patience: float) -> list[Metric]:
        """The families of the collectors that returned; `stuck` is one that did not within `patience`."""
        thread = threading.Thread(target=self._work, name="heapwatch-collect", daemon=True)
        thread.start()
        while thread.is_alive():
            before = self._current
            thread.join(patience)
            with self._changing:
                if thread.is_alive() and before is not None and self._current is before:
                    self.stuck = before
                    self._left_out.add(before)
                    break
        return self._families

    def _work(self) -> None:
        while self._waiting:
            self._current = self._waiting.popleft()
            families = self._read(self._current)
            with self._changing:
                if self.stuck is not None:
                    self._left_out.discard(self.stuck)
                    return
                self._families += families
                self._current = None


def _checked(family: Metric) -> Metric:
    """The family without non-finite samples; raises if a value is no number."""
    family.samples = [sample for sample in family.samples if math.isfinite(sample.value)]
    return family
