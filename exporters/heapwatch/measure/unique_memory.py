"""Memory that processes do not share, though the page tables are walked seldom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import psutil

log = logging.getLogger("heapwatch")

# Walking them takes 5 to 9 ms a gigabyte: at most this often, in seconds, and at most this share of the time.
_SECONDS = 60.0
_SHARE = 0.005

Identity = tuple[int, float]  # a process's number, and when it was created


class UniqueMemory:
    """Unique set sizes: resident memory of now, less the pages that were shared when they were last counted.

    The sum of the resident memory of forked workers counts the pages that they share with their trainer once
    for each of them; the sum of what they do not share does not.

    Args:
        clock: monotonic seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shared: dict[Identity, int] = {}
        self._due = self._paid = float("-inf")
        self._refused = False

    def read(self, processes: Iterable[psutil.Process]) -> dict[psutil.Process, int]:
        """Bytes by process; without those that ended, that are not counted yet, or that may not be read.

        Call it with all processes that are watched: those that are left out are forgotten.
        """
        live = {process: memory for process in processes if (memory := _resident(process)) is not None}
        now = self._clock()
        if now >= self._due:
            self._shared = {}
            self._count(live)
            self._due = max(now + _SECONDS, self._paid)
        elif now >= self._paid:
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
                self._say_refused(process)
                continue
            self._shared[_identity(process)] = max(0, int(memory.rss) - int(memory.uss))
        spent = self._clock() - began
        self._paid = began + spent / _SHARE

    def _say_refused(self, process: psutil.Process) -> None:
        if not self._refused:
            self._refused = True
            log.warning(
                "shared pages of process %d may not be read: they count once for each worker that has them",
                process.pid,
            )


def _identity(process: psutil.Process) -> Identity:
    return process.pid, process.create_time()


def _resident(process: psutil.Process) -> int | None:
    """Resident bytes; None once it has ended."""
    try:
        return int(process.memory_info().rss) or None
    except psutil.Error:
        return None
