"""Reads the parts of a process's memory."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

import psutil

from heapwatch.collectors.progress import Progress
from heapwatch.explain.shared_files import SharedFiles
from heapwatch.judge.memory import MemoryLevels
from heapwatch.measure.gpu import POOLS, NvmlSession, Pool, free_bytes
from heapwatch.measure.process.memory import ResidentMemory, free_memory, malloc_bytes, memory_limit
from heapwatch.measure.process.object_store import ObjectStore
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.process.process_tree import descendants
from heapwatch.measure.process.procfs import (
    bytes_of_files,
    mapped_files,
    memory_parts,
)
from heapwatch.measure.process.ray_job import is_ray_worker

# Largest share of the time for reading a source; together a third of what all explaining may take.
_SHARE, _MALLOC_SHARE, _WORKERS_SHARE = 0.0001, 0.0002, 0.0002
_PARTS_SECONDS = 1.0
# A rate needs five readings, and a verdict comes after 40 seconds, of which the first ten do not count. A
# source that costs no more than this is read often enough at the start.
FIRST_SECONDS, FIRST_PAUSE_SECONDS = 120.0, 4.0
_FIRST_COST_SECONDS, _FIRST_SHARE = 0.02, 0.0025
_MANY_MODULES = 12
_MOST_WORKERS = 512
_CEILING_SECONDS, _CEILINGS = 60.0, 30  # half an hour of what other programs left
_LEAST_SHARED = 1_000_000  # bytes for which the files of shared memory are looked up
_PREFIXES_SECONDS = 60.0  # between searches of the program's code for names of files
_CHILDLESS_SECONDS = 5.0  # between searches for child processes, as long as none was found
_SCHEDULER = Path("/proc/self/schedstat")  # of the main thread: nanoseconds of running and of waiting


NO_PROGRESS = Progress()


class ProcessMemory(MemoryLevels):
    """The memory of this process, read by itself.

    Args:
        clock: monotonic seconds.
        progress: returns the progress that the program reported.

    Attributes:
        referenced: bytes of shared memory that the container keeps which keeps most.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[], Progress] = lambda: NO_PROGRESS,
    ) -> None:
        super().__init__(memory_limit(), clock())
        self._began = self.startup_end
        self.shared_files = SharedFiles()
        self._pools: list[dict[int, Pool]] = []
        self._nvml = NvmlSession()
        self._ceilings: deque[float] = deque(maxlen=_CEILINGS)
        self._ceiling_due = float("-inf")
        self._modules = 0
        self._progress = progress
        self._clock = clock
        self._read_resident = ResidentMemory()
        self._store = ObjectStore()
        self._workers: list[int] = []
        self._in_files = 0
        self.referenced = 0.0
        self._due: dict[str, float] = {}

    def close(self) -> None:
        """Close what was opened for reading; what is read later takes longer."""
        self._nvml.disconnect()
        self.shared_files.close()
        self._read_resident.close()

    def read_resident(self) -> None:
        """Read the resident memory, which takes about a microsecond."""
        now = self._clock()
        self.resident.add(now, self._read_resident.read())
        if len(sys.modules) >= self._modules + _MANY_MODULES:
            self._modules, self.startup_end = len(sys.modules), now
        progress = self._progress()
        for series, count in ((self.steps, progress.steps), (self.cycles, progress.cycles)):
            if count is not None:
                series.add(now, count)
        if self.first_step_at < 0 and (progress.steps or progress.cycles):
            self.first_step_at = now

    def resident_now(self) -> int:
        """The resident bytes of now, for any thread."""
        return self._read_resident.read()

    def parts(self) -> dict[str, float]:
        """The parts that only the process itself can read, in bytes."""
        last = {"used": self.used.last, "retained": self.retained.last, "gpu": self.gpu.last}
        return {name: held for name, held in last.items() if held is not None}

    def make_due(self) -> None:
        """Have `read_parts` read all of them next."""
        self._due.clear()

    def read_parts(self) -> None:
        """Read the other parts that are due; a part that takes longer is read more rarely."""
        for read, share in (
            (self._read_prefixes, _SHARE),
            (self._read_shared_files, _WORKERS_SHARE),
            (self._read_mappings, _SHARE),
            (self._read_status, _SHARE),
            (self._read_granted, _SHARE),
            (self._read_malloc, _MALLOC_SHARE),
            (self._read_gpu, _SHARE),
            (self._read_gpu_left, _SHARE),
            (self._read_workers, _WORKERS_SHARE),
            (self._read_store, _SHARE),
            (self._read_free, _SHARE),
        ):
            began = self._clock()
            if began < self._due.get(read.__name__, 0.0):
                continue
            spent = own_time()
            with suppress(OSError, psutil.Error, RuntimeError, LookupError):
                read(began)
            cost = own_time() - spent
            pause = max(_PARTS_SECONDS, cost / share)
            if began - self._began < FIRST_SECONDS and cost <= _FIRST_COST_SECONDS:
                pause = min(pause, max(FIRST_PAUSE_SECONDS, cost / _FIRST_SHARE))
            if read == self._read_prefixes:
                pause = max(pause, _PREFIXES_SECONDS)
            if read == self._read_workers and self.processes.last is None:
                pause = max(pause, _CHILDLESS_SECONDS)
            self._due[read.__name__] = began + pause

    def _read_granted(self, now: float) -> None:
        _, waited, *_ = _SCHEDULER.read_bytes().split()
        self.granted.add(now, now - int(waited) / 1e9)

    def _read_status(self, now: float) -> None:
        parts = memory_parts("self")
        if parts is None:
            return
        self.virtual.add(now, parts.virtual)
        shared: float = max(0, parts.shared - self._in_files)
        if "ray" in sys.modules:
            # Which pages of the store a worker of Ray maps says nothing about what it keeps there.
            shared = max(0 if is_ray_worker(os.getpid()) else shared, self._in_store())
        shared += self.shared_files.bytes
        self.shared.add(now, shared)
        self.private.add(now, parts.anonymous + shared)

    def _read_mappings(self, _: float) -> None:
        """Look up which files of shared memory are mapped, where there can be any."""
        parts = memory_parts("self")
        mapped = 0 if parts is None else parts.shared
        names = mapped_files("self") if mapped >= _LEAST_SHARED else set[str]()
        if mapped or self.shared_files.known:  # else workers can hardly have mapped one
            self.shared_files.add(names.union(*map(mapped_files, self._workers)))
        self._in_files = bytes_of_files(names)

    def _read_prefixes(self, _: float) -> None:
        self.shared_files.find_prefixes()

    def _read_shared_files(self, now: float) -> None:
        self.shared_files.read(now)

    def _in_store(self) -> int:
        """Bytes of Ray's object store for which this process stands: all of its own, else what it keeps."""
        held = self._store.read() or 0
        return held if self._store.is_own else min(held, round(self.referenced))

    def _read_store(self, _: float) -> None:
        if "ray" in sys.modules:
            self._store.find()

    def _read_malloc(self, now: float) -> None:
        used, retained = malloc_bytes()
        for series, held in ((self.used, used), (self.retained, retained)):
            if held is not None:
                series.add(now, held)

    def _read_gpu(self, now: float) -> None:
        self._pools = [pools for read in POOLS.values() if (pools := read())]
        in_use: Counter[int] = Counter()
        for pools in self._pools:
            in_use.update({device: pool.in_use for device, pool in pools.items()})
        if in_use:
            self.gpu.add(now, in_use.total())
        for device, held in in_use.items():
            self.devices[device].add(now, held)

    def _read_gpu_left(self, _: float) -> None:
        left = Counter(free_bytes(self._nvml)) if self._pools else Counter()
        for pools in self._pools:
            left.update({device: pool.held - pool.in_use for device, pool in pools.items() if device in left})
        self.gpu_left = dict(left)

    def _read_free(self, now: float) -> None:
        ceiling = (self.resident.last or 0.0) + (self.workers.last or 0.0) + free_memory()
        if now >= self._ceiling_due:
            self._ceiling_due = now + _CEILING_SECONDS
            self._ceilings.append(ceiling)
        self.ceiling = min(ceiling, median(self._ceilings))

    def _read_workers(self, now: float) -> None:
        self._workers = descendants(os.getpid(), _MOST_WORKERS)
        live = [parts for pid in self._workers if (parts := memory_parts(pid)) is not None]
        resident, count = sum(parts.anonymous for parts in live), len(live)
        if count != (self.processes.last or 0):
            # A forked process shares its parent's pages, which count for both: what both can hold is more.
            self._ceilings.clear()
            self._ceiling_due = self._due[self._read_free.__name__] = float("-inf")
        if count or self.processes.last is not None:
            self.workers.add(now, resident)
            self.processes.add(now, count)
