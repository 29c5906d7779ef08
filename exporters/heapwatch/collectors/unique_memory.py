"""Memory that no other process shares, and that would be freed if the process ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.process.memory import UniqueMemory
from heapwatch.measure.process.process_tree import ProcessTree


class UniqueMemoryCollector:
    """Reads USS by role. It is a collector of its own so that a slow read affects no other series."""

    name = "unique_memory"

    def __init__(self, tree: ProcessTree, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._memory = UniqueMemory(clock)
        self.workers: int | None = None  # bytes of all workers at the last reading; None if unknown

    def collect(self) -> Iterable[Metric]:
        """Yield the sizes by role."""
        trainer = self._tree.trainer
        sizes = self._memory.read([trainer, *self._tree.workers()])
        workers = [size for process, size in sizes.items() if process != trainer]
        self.workers = sum(workers) if workers else None
        family = GaugeMetricFamily(
            "trainer_process_unique_memory_bytes",
            "Memory no other process shares (USS); worker: sum of children. Shared pages are counted seldom.",
            labels=["role"],
        )
        if trainer in sizes:
            family.add_metric(["trainer"], sizes[trainer])
        if workers:
            family.add_metric(["worker"], sum(workers))
        yield family
