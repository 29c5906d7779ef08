"""Memory that no other process shares: what would come back if the process ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.process_tree import ProcessTree

# Reading it walks the page tables, 5 to 9 ms a gigabyte: at most this often, in seconds, and never more than
# this share of the time.
_SECONDS = 60.0
_SHARE = 0.005


class UniqueMemoryCollector:
    """Reads USS by role, seldom. It stands alone so that a slow read costs no other series."""

    name = "unique_memory"

    def __init__(self, tree: ProcessTree, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._clock = clock
        self._latest: dict[str, int] = {}
        self._due = float("-inf")

    def collect(self) -> Iterable[Metric]:
        """Yield the sizes last read."""
        began = self._clock()
        if began >= self._due:
            sizes = {"trainer": _unique([self._tree.trainer]), "worker": _unique(self._tree.workers())}
            self._latest = {role: size for role, size in sizes.items() if size is not None}
            self._due = began + max(_SECONDS, (self._clock() - began) / _SHARE)
        family = GaugeMetricFamily(
            "trainer_process_unique_memory_bytes",
            "Memory no other process shares (USS), sampled seldom.",
            labels=["role"],
        )
        for role, size in self._latest.items():
            family.add_metric([role], size)
        yield family


def _unique(processes: list[psutil.Process]) -> int | None:
    """USS of live processes; None where there is none, or where the system does not let us read it."""
    sizes = []
    for process in processes:
        try:
            sizes.append(int(process.memory_full_info().uss))
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            return None
    return sum(sizes) if sizes else None
