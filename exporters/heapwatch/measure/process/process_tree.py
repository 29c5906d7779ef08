"""A process and its live descendants, listed within a share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from heapwatch.measure.process.descendants import descendants

# Share of the time. Where psutil has to list them, at 20 us a process, a machine with 750 processes is listed
# again at every scrape.
_SHARE = 0.001


class ProcessTree:
    """The trainer and its workers, for all collectors.

    Where the kernel does not list them, every process of the machine has to be read with the GIL held, which
    may be thousands. So the list is made again only within a share of the time: a new worker may appear late,
    but an ended one is dropped at once.

    Args:
        pid: process id of the trainer; this process by default.
        share: largest share of the time for listing.
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.

    Raises:
        psutil.NoSuchProcess: there is no process `pid`.

    """

    def __init__(
        self,
        pid: int | None = None,
        *,
        share: float = _SHARE,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self.trainer = psutil.Process(pid)
        self._share = share
        self._clock = clock
        self._spent = spent
        self._listed: list[psutil.Process] = []
        self._due = float("-inf")

    def workers(self) -> list[psutil.Process]:
        """The live descendants without multiprocessing's helpers; none if the trainer has ended."""
        now = self._clock()
        if now < self._due:
            return [process for process in self._listed if process.is_running()]
        began = self._spent()
        self._listed = []
        with suppress(psutil.NoSuchProcess):
            for pid in descendants(self.trainer.pid):
                with suppress(psutil.NoSuchProcess):
                    self._listed.append(psutil.Process(pid))
        self._due = now + (self._spent() - began) / self._share
        return self._listed
