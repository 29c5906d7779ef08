"""A process and its live descendants, from small files of procfs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from heapwatch.measure.process.procfs import children_of, command_of
from heapwatch.measure.process.ray_job import ray_workers

# Where psutil has to list the processes, it takes 20 us for each of the machine, with the GIL held.
_LISTED_SECONDS, _SHARE = 10.0, 0.001
_FORKSERVER = "from multiprocessing.forkserver import"
VISITOR = "heapwatch.cli.main"  # of the command that explains a worker
_TRACKERS = ("from multiprocessing.resource_tracker import", "loky.backend.resource_tracker")


class ProcessTree:
    """The trainer and its workers, for all collectors.

    The list is made every ten seconds, or less often if it takes long. A new worker may appear late, but an
    ended one is dropped at once.

    Args:
        pid: process id of the trainer; this process by default.
        clock: monotonic seconds.

    Raises:
        psutil.NoSuchProcess: there is no process `pid`.

    """

    def __init__(self, pid: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.trainer = psutil.Process(pid)
        self._clock = clock
        self._listed: list[psutil.Process] = []
        self._next_listing_at = float("-inf")

    def workers(self) -> list[psutil.Process]:
        """The live descendants without multiprocessing's helpers; none if the trainer has ended."""
        now = self._clock()
        if now < self._next_listing_at:
            return [process for process in self._listed if process.is_running()]
        began, self._listed = time.thread_time(), []
        with suppress(psutil.NoSuchProcess):
            for pid in descendants(self.trainer.pid):
                with suppress(psutil.NoSuchProcess):
                    self._listed.append(psutil.Process(pid))
        self._next_listing_at = now + max(_LISTED_SECONDS, (time.thread_time() - began) / _SHARE)
        return self._listed


def descendants(pid: int, most: int | None = None, proc: str = "/proc") -> list[int]:
    """Live children of a process and theirs, at most so many; where the kernel does not list them, by psutil.

    Resource trackers and fork servers of multiprocessing are left out, their children are not. The workers of
    a Ray job count as children of its driver.

    Reading the kernel's lists of children takes as long as there are threads, while psutil reads every
    process of the machine.

    Raises:
        psutil.NoSuchProcess: there is no process `pid`.

    """
    pids = ray_workers(pid, proc)
    waiting = [pid, *pids]
    commands = dict.fromkeys(waiting, "")
    while waiting and (most is None or len(pids) < most):
        parent = waiting.pop()
        children = children_of(parent, proc)
        if parent == pid and not children and not os.path.exists(f"{proc}/{pid}/task/{pid}/children"):
            return _descendants_by_psutil(pid)[:most]
        for child in children:
            if child in commands:
                continue
            commands[child] = " ".join(command_of(child, proc))
            if not is_housekeeper(commands[child], commands[parent]):
                pids.append(child)
            waiting.append(child)
    return pids[:most]


def _descendants_by_psutil(pid: int) -> list[int]:
    children = psutil.Process(pid).children(recursive=True)
    commands, parents = {}, {}
    for child in children:
        with suppress(psutil.Error):
            commands[child.pid] = " ".join(child.cmdline())
            parents[child.pid] = child.ppid()
    return [
        child.pid
        for child in children
        if not is_housekeeper(commands.get(child.pid, ""), commands.get(parents.get(child.pid, 0), ""))
    ]


def is_housekeeper(command: str, parent_command: str) -> bool:
    """Whether a process is a resource tracker, the fork server itself, or a command of this package.

    Args:
        command: command line of the process. A worker has that of the fork server from which it was forked.
        parent_command: command line of its parent.

    """
    if is_tracker(command) or f"from {VISITOR} import" in command:
        return True
    return _FORKSERVER in command and _FORKSERVER not in parent_command


def is_tracker(command: str) -> bool:
    """Whether a process is a resource tracker of multiprocessing or joblib."""
    return any(mark in command for mark in _TRACKERS)
