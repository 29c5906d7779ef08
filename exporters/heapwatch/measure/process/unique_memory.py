"""Unique memory of processes, with few walks of their page tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import psutil

log = logging.getLogger("heapwatch")

# Walking page tables takes 5 to 9 ms for each gigabyte.
_INTERVAL_SECONDS = 60.0
_TIME_SHARE = 0.005

Identity = tuple[int, float]  # process id and time of creation


class UniqueMemory:
    """Unique set sizes: present resident memory less the shared pages at the last walk.

    Pages that forked workers share with their trainer are resident in each worker. So a sum of resident
    memory counts them several times, and a sum of unique memory does not.

    Args:
        clock: monotonic seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shared: dict[Identity, int] = {}
        self._due = self._affordable_at = float("-inf")
        self._refused = False

    def read(self, processes: Iterable[psutil.Process]) -> dict[psutil.Process, int]:
        """Bytes by process, without processes that ended, are not walked yet or may not be read.

        Pass all watched processes: the others are dropped.
        """
        live = {process: memory for process in processes if (memory := _resident(process)) is not None}
        now = self._clock()
        if now >= self._due:
            self._shared = {}
            self._count(live)
            self._due = max(now + _INTERVAL_SECONDS, self._affordable_at)
        elif now >= self._affordable_at:
            self._count(process for process in live if _identity(process) not in self._shared)
        identities = {process: _identity(process) for process in live}
        self._shared = {one: self._shared[one] for one in identities.values() if one in self._shared}
        return {
            process: max(0, live[process] - self._shared[one])
            for process, one in identities.items()
            if one in self._shared
        }

    def _count(self, processes: Iterable[psutil.Process]) -> None:
        began = self._clock()
        for process in processes:
            try:
                memory = process.memory_full_info()
            except psutil.NoSuchProcess:
                continue
            except psutil.AccessDenied:
                self._log_refusal(process)
                continue
            self._shared[_identity(process)] = max(0, int(memory.rss) - int(memory.uss))
        spent = self._clock() - began
        self._affordable_at = began + spent / _TIME_SHARE

    def _log_refusal(self, process: psutil.Process) -> None:
        if not self._refused:
            self._refused = True
            log.warning(
                "shared pages of process %d cannot be read: they are counted for each worker that has them",
                process.pid,
            )


def _identity(process: psutil.Process) -> Identity:
    return process.pid, process.create_time()


def _resident(process: psutil.Process) -> int | None:
    """Resident bytes; None if the process has ended."""
    try:
        return int(process.memory_info().rss) or None
    except psutil.Error:
        return None
