"""Memory of processes: resident and unique bytes, limits, and this process's malloc."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import psutil

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOVED_SECONDS = 60.0  # after which it is looked up again in which control groups a process is


class ResidentMemory:
    """Reads this process's RSS, and VMS, from an open descriptor of `/proc/self/statm`, else with psutil.

    After a fork the descriptor still shows the parent: call `reopen` in the child.
    """

    def __init__(self, statm: str = "/proc/self/statm") -> None:
        self._statm = statm
        self._descriptor = -1
        self.reopen()

    def reopen(self) -> None:
        """Open the calling process's file."""
        self.close()
        try:
            self._descriptor = os.open(self._statm, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1

    def close(self) -> None:
        """Close the descriptor, unless the program has closed it and opened another file of its number."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/statm"):
                    os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def read(self) -> int:
        """Resident bytes."""
        return self._read(1, "rss")

    def read_virtual(self) -> int:
        """Bytes of address space."""
        return self._read(0, "vms")

    def _read(self, column: int, name: str) -> int:
        try:
            return int(os.pread(self._descriptor, 128, 0).split()[column]) * _PAGE_BYTES
        except (OSError, IndexError, ValueError):
            return int(getattr(psutil.Process().memory_info(), name))


def memory_limit(proc: Path = Path("/proc/self")) -> int:
    """The memory limit in bytes: the lowest limit of its cgroups (v2 and v1), else the RAM.

    Args:
        proc: the process's folder in procfs.

    """
    try:
        ram = int(psutil.virtual_memory().total)
    except (psutil.Error, OSError):  # a sandbox without /proc
        ram = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES
    return min([ram, *(limit for limit, _, _ in _cgroup_limits(proc))])


def free_memory(proc: Path = Path("/proc/self")) -> int:
    """Bytes that this process can still allocate below the limits of its cgroups and the available RAM.

    Page cache that the kernel can drop counts as free.

    Args:
        proc: the process's folder in procfs.

    """
    ram = int(psutil.virtual_memory().available)
    return min([ram, *(_free(*group) for group in _cgroup_limits(proc))])


def _free(limit: int, folder: Path, version_1: bool) -> int:
    usage = _read_number(folder / ("memory.usage_in_bytes" if version_1 else "memory.current"))
    if usage is None:
        return limit
    statistic = "total_inactive_file" if version_1 else "inactive_file"
    reclaimable = _read_statistic(folder / "memory.stat", statistic)
    return max(0, limit - max(0, usage - reclaimable))


def _cgroup_limits(proc: Path) -> list[tuple[int, Path, bool]]:
    """Each memory limit of the process, with its group's folder and whether that is version 1."""
    limits = []
    for folder, version_1 in control_groups(proc):
        limit = _read_number(folder / ("memory.limit_in_bytes" if version_1 else "memory.max"))
        if limit is not None:
            limits.append((limit, folder, version_1))
    return limits


def control_groups(proc: Path) -> list[tuple[Path, bool]]:
    """The folders of a process's groups, each with its parents, and whether each is version 1."""
    return _control_groups(proc, int(time.monotonic() / _MOVED_SECONDS))


@lru_cache(maxsize=64)
def _control_groups(proc: Path, _period: int) -> list[tuple[Path, bool]]:
    try:
        memberships = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return []
    groups = []
    for membership in memberships:
        _, controllers, path = (*membership.split(":", 2), "", "")[:3]
        if path.startswith("/") and (not controllers or "memory" in controllers.split(",")):
            version_1 = bool(controllers)
            groups += [(folder, version_1) for folder in _folders(mounts, path, version_1=version_1)]
    return groups


def _folders(mounts: list[str], path: str, *, version_1: bool) -> list[Path]:
    """The group's folder and its parents, up to where the hierarchy is mounted."""
    for mount in mounts:
        # proc(5): id parent device root mount-point options [tags] - type source super-options
        mount_fields, _, source_fields = (field.split() for field in mount.partition(" - "))
        if not source_fields or source_fields[0] != ("cgroup" if version_1 else "cgroup2"):
            continue
        if version_1 and "memory" not in source_fields[-1].split(","):
            continue
        root, mount_point = mount_fields[3:5]
        # Inside a container the mount shows a subtree, while the path may still be the host's.
        inner = os.path.relpath(path, root) if Path(path).is_relative_to(root) else "."
        top = Path(mount_point)
        group = top / inner
        return [group, *(parent for parent in group.parents if parent.is_relative_to(top))]
    return []


def _read_number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _read_statistic(path: Path, name: str) -> int:
    """The bytes of `name` in a group's memory.stat; 0 if it is missing."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(value) for key, _, value in (line.partition(" ") for line in lines) if key == name), 0)


# Walking page tables takes 5 to 9 ms for each gigabyte.
_INTERVAL_SECONDS = 60.0
_TIME_SHARE = 0.005


class UniqueMemory:
    """Unique set sizes: present resident memory less the shared pages at the last walk. Any thread may read.

    Pages that forked workers share with their trainer are resident in each worker. So a sum of resident
    memory counts them several times, and a sum of unique memory does not.

    Args:
        clock: monotonic seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shared: dict[psutil.Process, int] = {}  # equal if process id and time of creation are
        self._next_walk_at = float("-inf")

    def read(self, processes: Iterable[psutil.Process]) -> dict[psutil.Process, int]:
        """Bytes by process, without processes that ended, are not walked yet or may not be read."""
        live = {process: memory for process in processes if (memory := _resident(process)) is not None}
        began = self._clock()
        if began >= self._next_walk_at:
            shared = ((process, _shared_bytes(process)) for process in live)
            self._shared = {process: nbytes for process, nbytes in shared if nbytes is not None}
            self._next_walk_at = began + max(_INTERVAL_SECONDS, (self._clock() - began) / _TIME_SHARE)
        return {
            process: max(0, memory - self._shared[process])
            for process, memory in live.items()
            if process in self._shared
        }


def _shared_bytes(process: psutil.Process) -> int | None:
    """Resident bytes that other processes share; None if they may not be read."""
    try:
        memory = process.memory_full_info()
    except psutil.Error:
        return None
    return max(0, int(memory.rss) - int(memory.uss))


def _resident(process: psutil.Process) -> int | None:
    """Resident bytes; None if the process has ended."""
    try:
        return int(process.memory_info().rss) or None
    except psutil.Error:
        return None


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33 and later: mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    ]  # fmt: skip


@cache
def _mallinfo2() -> Callable[[], _MallocInfo] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return None
    function.restype = _MallocInfo
    return function  # type: ignore[no-any-return]


class Malloc:
    """What malloc has handed out, and what it keeps of freed memory.

    To glibc, free memory stays free when its pages are returned to the system (`malloc_trim`). How much that
    is, it does not tell, but blocks in use and kept memory cannot be more than the process's anonymous
    resident memory. What was returned comes back only as it is used again: there is never more of it than
    of free memory.
    """

    def __init__(self) -> None:
        self._returned = 0

    def read(self) -> tuple[int | None, int | None]:
        """Bytes handed out, and at most how many freed ones are kept; None if they cannot be known.

        Takes less than 0.1 ms on a new heap and 19 ms with half a million free chunks, without the GIL.
        """
        read = _mallinfo2()
        if read is None:
            return None, None
        info, resident = read(), _anonymous()
        # Mapped blocks (hblkhd) are beside the arenas, not in uordblks.
        used, free = info.uordblks + info.hblkhd, info.fordblks
        if resident is None:
            return used, None
        # If not all can be touched, it is the mapped ones: a large array that is yet to be filled.
        resident_used = used if used <= resident else info.uordblks
        self._returned = min(free, max(self._returned, resident_used + free - resident))
        return used, free - self._returned


malloc_bytes = Malloc().read  # one for all, so that all say the same


def _anonymous() -> int | None:
    """Resident bytes of this process that are neither of a file nor of shared memory."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_bytes().split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * _PAGE_BYTES
