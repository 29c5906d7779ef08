"""A process and its live descendants, from small files of procfs; and why the kernel ended a process."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

# Share of the time. Where psutil has to list them, at 20 us a process, a machine with 750 processes is listed
# again at every scrape.
_SHARE = 0.001
_FORKSERVER = "from multiprocessing.forkserver import"
VISITOR = "heapwatch.cli.main"  # of the command that explains a worker
_TRACKERS = ("from multiprocessing.resource_tracker import", "loky.backend.resource_tracker")
_PRIVATE = re.compile(rb"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
SHARED_FILES = "/dev/shm"
_MAPPED = re.compile(rb" /dev/shm/([^\n]+)")
LEAST_SHARED = 1_000_000  # bytes for which the files of shared memory are looked up
_READ_AT_ONCE = 65_536

_CGROUPS = Path("/sys/fs/cgroup")
_MACHINE = Path("/proc/vmstat")
OUT_OF_MEMORY = "out of memory"
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


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


def descendants(pid: int, most: int | None = None, proc: str = "/proc") -> list[int]:
    """Live children of a process and theirs, at most so many; where the kernel does not list them, by psutil.

    Resource trackers and fork servers of multiprocessing are left out, their children are not.

    The kernel keeps a list of children for each thread (CONFIG_PROC_CHILDREN): reading these takes as long as
    there are threads, while psutil reads every process of the machine.

    Raises:
        psutil.NoSuchProcess: there is no process `pid`.

    """
    found: list[int] = []
    waiting = [pid]
    commands = {pid: ""}
    while waiting and (most is None or len(found) < most):
        parent = waiting.pop()
        children = _children(parent, proc)
        if parent == pid and not children and not os.path.exists(f"{proc}/{pid}/task/{pid}/children"):
            return _listed_by_psutil(pid)[:most]
        for child in children:
            commands[child] = _command(child, proc)
            if not is_housekeeper(commands[child], commands[parent]):
                found.append(child)
            waiting.append(child)
    return found[:most]


def private_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Resident bytes of a process that belong to no file; None for one that has ended, or is a zombie."""
    found = dict(_PRIVATE.findall(read(f"{proc}/{pid}/status")))
    if not found:
        return None
    shared = without_files(1024 * int(found.get(b"RssShmem", 0)), pid, proc)
    return 1024 * int(found.get(b"RssAnon", 0)) + shared


def without_files(shared: int, pid: int | str, proc: str = "/proc") -> int:
    """Resident `shared` bytes of a process, less what the files in /dev/shm hold that it maps."""
    for name in mapped_files(pid, proc) if shared >= LEAST_SHARED else ():
        with suppress(OSError):
            shared -= 512 * os.stat(f"{SHARED_FILES}/{name}").st_blocks
    return max(0, shared)


def mapped_files(pid: int | str, proc: str = "/proc") -> set[str]:
    """Names of the files in /dev/shm that a process maps, without those that were removed."""
    names = {name.decode(errors="replace") for name in _MAPPED.findall(read(f"{proc}/{pid}/maps"))}
    return {name for name in names if not name.endswith(" (deleted)")}


def _children(pid: int, proc: str) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"{proc}/{pid}/task"):
            found += map(int, read(f"{proc}/{pid}/task/{task}/children").split())
    return found


def _command(pid: int, proc: str) -> str:
    return read(f"{proc}/{pid}/cmdline").decode(errors="replace").replace("\0", " ")


def read(file: str) -> bytes:
    """A file of procfs; empty if the process or the thread has ended.

    There is one for each thread of each process, and `Path.read_text` takes five times as long.
    """
    found = b""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while part := os.read(descriptor, _READ_AT_ONCE):
                found += part
        finally:
            os.close(descriptor)
    return found


def _listed_by_psutil(pid: int) -> list[int]:
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
    if any(mark in command for mark in (*_TRACKERS, f"from {VISITOR} import")):
        return True
    return _FORKSERVER in command and _FORKSERVER not in parent_command


class KernelKills:
    """Knows the OOM kills of each process's control group as of the last update."""

    def __init__(self) -> None:
        self._counts: dict[int, list[tuple[Path, int]]] = {}

    def update(self, pids: Iterable[int]) -> None:
        """Note the counts of live processes' control groups, and of the machine; forget all others."""
        self._counts = {
            pid: [(file, kills) for file in _files_of(pid) if (kills := _kills(file)) is not None]
            for pid in pids
        }

    def reason(self, pid: int) -> str | None:
        """Why a process that has just ended was ended; None if the kernel does not tell."""
        for file, before in self._counts.get(pid, ()):  # a control group may have ended with its process
            kills = _kills(file)
            if kills is not None:
                return OUT_OF_MEMORY if kills > before else None
        return None


def _files_of(pid: int) -> list[Path]:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        below = path.lstrip("/")
        if not controllers:
            files += [_CGROUPS / below / name for name in ("memory.events.local", "memory.events")]
        elif "memory" in controllers.split(","):
            files.append(_CGROUPS / "memory" / below / "memory.oom_control")
    return [*files, _MACHINE]


def _kills(file: Path) -> int | None:
    try:
        found = _COUNT.search(file.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(found[1]) if found else None
