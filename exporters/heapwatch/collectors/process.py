"""Memory and CPU of the trainer and of its live child processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.measure.process.memory import free_memory, memory_limit
from heapwatch.measure.process.process_tree import ProcessTree


@dataclass(frozen=True)
class Usage:
    """Sums over the processes of one role: bytes, and the number of processes."""

    resident: int = 0
    virtual: int = 0
    processes: int = 0


class ProcessCollector:
    """Reads the process tree. Children that end meanwhile are left out, but their CPU time stays counted.

    Args:
        tree: the trainer and its workers.
        unique_workers: returns the bytes that the workers do not share, or None if unknown.

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
        resident = _by_role(
            "trainer_process_resident_memory_bytes",
            "Resident memory (RSS); worker: sum of children, each with the pages that it shares.",
        )
        virtual = _by_role("trainer_process_virtual_memory_bytes", "Virtual memory.")
        processes = _by_role("trainer_processes", "Live processes.")
        cpu = CounterMetricFamily(
            "trainer_process_cpu_seconds", "CPU time, user and system.", labels=["role"]
        )
        for role, used in usage.items():
            processes.add_metric([role], used.processes)
            if used.processes:
                resident.add_metric([role], used.resident)
                virtual.add_metric([role], used.virtual)
        cpu.add_metric(["trainer"], _cpu_seconds(trainer))
        cpu.add_metric(["worker"], self._worker_cpu_seconds(workers))
        limit = GaugeMetricFamily(
            "trainer_memory_limit_bytes", "Memory at which the process is killed: cgroup limit, else RAM."
        )
        proc = Path(f"/proc/{trainer.pid}")
        limit.add_metric([], memory_limit(proc))
        available = GaugeMetricFamily(
            "trainer_memory_available_bytes",
            "Memory of the trainer and its workers, plus what is free under the limit.",
        )
        unique = self._unique_workers()
        workers_hold = usage["worker"].resident if unique is None else unique
        available.add_metric([], usage["trainer"].resident + workers_hold + free_memory(proc))
        yield from (resident, virtual, processes, cpu, limit, available)

    def _worker_cpu_seconds(self, workers: list[psutil.Process]) -> float:
        live = {}
        for worker in workers:
            try:
                live[worker.pid, worker.create_time()] = _cpu_seconds(worker)
            except psutil.NoSuchProcess:
                continue
        ended = self._live_cpu_seconds.keys() - live.keys()
        self._ended_cpu_seconds += sum(self._live_cpu_seconds[key] for key in ended)
        self._live_cpu_seconds = live
        return self._ended_cpu_seconds + sum(live.values())


def _by_role(name: str, documentation: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, labels=["role"])


def _usage(processes: list[psutil.Process]) -> Usage:
    used = Usage()
    for process in processes:
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                memory = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        used = Usage(used.resident + memory.rss, used.virtual + memory.vms, used.processes + 1)
    return used


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
