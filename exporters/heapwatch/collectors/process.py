"""The trainer's process and its children: names and rank, memory, allocators, CPU time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector
from prometheus_client import ProcessCollector as ClientProcessCollector
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.families import counter, gauge, gauges
from heapwatch.measure.process.memory import (
    UniqueMemory,
    free_memory,
    malloc_bytes,
    memory_limit,
)
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.runtime.labels import machine

# Most share of the time for reading malloc: 0.3 µs on a new heap, 19 ms with half a million free chunks.
_MALLOC_SHARE = 0.002

# Rank and world size, the most specific launcher first: a process that torchrun starts inside a Slurm job
# has both. Sources: PyTorch's documentation of torchrun; srun(1); the Open MPI manual, mpirun(1); MPICH's
# Hydra process manager.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class Rank(NamedTuple):
    """A process's number in its distributed run, from 0, and the number of processes."""

    rank: int
    world_size: int


def current_rank(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """The rank of this process; None outside a run of several processes."""
    for rank_name, size_name in _LAUNCHERS:
        rank, size = _number(environment.get(rank_name)), _number(environment.get(size_name))
        if rank is not None and size is not None and size > 1 and rank < size:
            return Rank(rank, size)
    return None


def array_task(environment: Mapping[str, str] = os.environ) -> str:
    """`JOB_TASK` of a Slurm job array's task; empty elsewhere."""
    job, task = environment.get("SLURM_ARRAY_JOB_ID", ""), environment.get("SLURM_ARRAY_TASK_ID", "")
    return f"{job}_{task}" if _number(job) is not None and _number(task) is not None else ""


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


class InfoCollector:
    """Two constant series with value 1: the trainer's names as labels, and its machine's."""

    name = "info"

    def __init__(self, trainer: str, framework: str, run: str, rank: Rank | None = None) -> None:
        started = _start_label()
        self._names = (
            trainer, framework, run, *(map(str, rank) if rank else ("", "")), started,
            _title(trainer, run, rank, started),
        )  # fmt: skip

    def collect(self) -> Iterable[Metric]:
        """Yield `trainer_info` and `trainer_machine_info`."""
        yield gauge(
            "trainer_info",
            "The names of this process, and when it started, in its own time zone; rank and world size "
            "are empty outside a distributed run. title is what pages call it.",
            ("trainer", "framework", "run", "rank", "world_size", "started", "title"),
            {self._names: 1},
        )
        yield gauge(
            "trainer_machine_info",
            "The machine that this process runs on: the same label in each of its containers.",
            "machine",
            {machine(): 1},
        )


def _title(trainer: str, run: str, rank: Rank | None, started: str) -> str:
    """Name, run, rank and start, as far as they are known: `walker 7 rank 3, 11-24 14:02`."""
    name = " ".join(part for part in (trainer, run, f"rank {rank.rank}" if rank else "") if part)
    return ", ".join(part for part in (name, started) if part)


def _start_label() -> str:
    """Start of this process as month, day, hour and minute; empty if the system does not report it."""
    try:
        return time.strftime("%m-%d %H:%M", time.localtime(psutil.Process().create_time()))
    except (psutil.Error, OSError):
        return ""


class StandardCollector:
    """`process_start_time_seconds` and the other `process_*` and `python_*` of the Python client."""

    name = "standard"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ClientProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """Yield the standard families."""
        return self._registry.collect()


@dataclass(frozen=True)
class _Usage:
    """Sums over the processes of one role: bytes, and the number of processes."""

    resident: int = 0
    virtual: int = 0
    processes: int = 0


class ProcessCollector:
    """Reads the process tree. Ended children are omitted, but their CPU time stays in the counter.

    `unique_workers` returns the workers' unshared bytes, or None if unknown.
    """

    name = "process"

    def __init__(self, tree: ProcessTree, unique_workers: Callable[[], int | None] = lambda: None) -> None:
        self._tree = tree
        self._unique_workers = unique_workers
        self._ended_cpu_seconds = 0.0
        self._live_cpu_seconds: dict[tuple[int, float], float] = {}

    def collect(self) -> Iterable[Metric]:
        """Yield memory, CPU time and process counts by role, and the memory limit."""
        trainer, workers = self._tree.trainer, self._tree.workers()
        usage = {"trainer": _usage([trainer]), "worker": _usage(workers)}
        if usage["trainer"].processes == 0:
            raise psutil.NoSuchProcess(trainer.pid)
        live = {role: used for role, used in usage.items() if used.processes}
        resident = "Resident memory (RSS); worker: sum of children, each with the pages that it shares."
        yield from gauges(
            "role",
            live,
            ("trainer_process_resident_memory_bytes", resident, lambda used: used.resident),
            ("trainer_process_virtual_memory_bytes", "Virtual memory.", lambda used: used.virtual),
        )
        yield from gauges(
            "role", usage, ("trainer_processes", "Live processes.", lambda used: used.processes)
        )
        yield counter(
            "trainer_process_cpu_seconds",
            "CPU time, user and system.",
            "role",
            {"trainer": _cpu_seconds(trainer), "worker": self._worker_cpu_seconds(workers)},
        )
        proc = Path(f"/proc/{trainer.pid}")
        yield GaugeMetricFamily(
            "trainer_memory_limit_bytes",
            "Memory at which the process is killed: cgroup limit, else RAM.",
            memory_limit(proc),
        )
        unique = self._unique_workers()
        workers_hold = usage["worker"].resident if unique is None else unique
        yield GaugeMetricFamily(
            "trainer_memory_available_bytes",
            "Memory of the trainer and its workers, plus what is free under the limit.",
            usage["trainer"].resident + workers_hold + free_memory(proc),
        )

    def _worker_cpu_seconds(self, workers: list[psutil.Process]) -> float:
        live = {}
        for worker in workers:
            try:
                live[worker.pid, worker.create_time()] = _cpu_seconds(worker)
            except psutil.NoSuchProcess:
                continue
        ended_keys = self._live_cpu_seconds.keys() - live.keys()
        self._ended_cpu_seconds += sum(self._live_cpu_seconds[key] for key in ended_keys)
        self._live_cpu_seconds = live
        return self._ended_cpu_seconds + sum(live.values())


class UniqueMemoryCollector:
    """Reads unique memory (USS) by role, as a separate collector: a slow read affects no other series."""

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
        yield gauge(
            "trainer_process_unique_memory_bytes",
            "Memory no other process shares (USS); worker: sum of children. Shared pages are counted seldom.",
            "role",
            {"trainer": sizes.get(trainer), "worker": self.workers},
        )


class BaselineCollector:
    """Reads the resident memory once, at the first safe point, when the trainer is set up."""

    name = "baseline"

    def __init__(self, resident: Callable[[], int]) -> None:
        self._resident = resident
        self._baseline: int | None = None

    def note(self) -> None:
        """Store the present memory as the baseline, unless there is one."""
        if self._baseline is None:
            self._baseline = self._resident()

    def collect(self) -> Iterable[Metric]:
        """Yield the baseline, once there is one."""
        yield GaugeMetricFamily(
            "trainer_memory_baseline_bytes",
            "Resident memory of the trainer when training began.",
            self._baseline,
        )


class AllocatorCollector:
    """Reads glibc's `mallinfo2` and CPython's block count.

    If RSS grows but used bytes and blocks do not, the cause is fragmentation or retention, not a leak. If
    used bytes grow with RSS, objects hold them. Small Python objects count as blocks, since their arenas are
    outside malloc's heap. Larger objects, including tensors and arrays on the CPU, count as malloc's bytes.
    """

    name = "allocator"

    def __init__(self) -> None:
        self._next_read_at = float("-inf")
        self._latest: tuple[int | None, int | None, int | None] = (None, None, None)

    def collect(self) -> Iterable[Metric]:
        """Yield used and retained bytes, and Python's blocks."""
        began = time.perf_counter()
        if began >= self._next_read_at:
            self._latest = (*malloc_bytes(), sys.getallocatedblocks())
            self._next_read_at = began + (time.perf_counter() - began) / _MALLOC_SHARE
        used, retained, blocks = self._latest
        yield GaugeMetricFamily(
            "trainer_allocator_used_bytes", "Bytes that malloc has allocated (glibc), touched or not.", used
        )
        yield GaugeMetricFamily(
            "trainer_allocator_retained_bytes",
            "Freed bytes that malloc keeps resident (glibc), at most: with its blocks in use they fit into "
            "anonymous resident memory, so pages that it has returned (`malloc_trim`) do not count.",
            retained,
        )
        yield GaugeMetricFamily(
            "trainer_python_allocated_blocks",
            "Memory blocks that Python's small-object allocator has allocated.",
            blocks,
        )


def _usage(processes: list[psutil.Process]) -> _Usage:
    usage = _Usage()
    for process in processes:
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                memory = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        usage = _Usage(usage.resident + memory.rss, usage.virtual + memory.vms, usage.processes + 1)
    return usage


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
