"""The resident memory of this process, read cheaply, and its memory limit."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


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
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

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


def memory_limit(proc: Path = Path("/proc/self"), physical: int | None = None) -> int:
    """The memory limit in bytes: the lowest limit of its cgroups (v2 and v1), else the RAM.

    Args:
        proc: the process's folder in procfs.
        physical: bytes of RAM; by default those of the machine.

    """
    ram = _physical() if physical is None else physical
    return min([ram, *(limit for limit, _, _ in _cgroup_limits(proc))])


def _physical() -> int:
    try:
        return int(psutil.virtual_memory().total)
    except (psutil.Error, OSError):  # a sandbox without /proc
        return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def free_memory(proc: Path = Path("/proc/self"), available: int | None = None) -> int:
    """Bytes that this process can still allocate below the limits of its cgroups and the available RAM.

    Page cache that the kernel can drop counts as free.

    Args:
        proc: the process's folder in procfs.
        available: available bytes of RAM; by default those of the machine.

    """
    ram = int(psutil.virtual_memory().available) if available is None else available
    return min([ram, *(_free(*group) for group in _cgroup_limits(proc))])


def _free(limit: int, folder: Path, version_1: bool) -> int:
    used = _read_number(folder / ("memory.usage_in_bytes" if version_1 else "memory.current"))
    if used is None:
        return limit
    statistic = "total_inactive_file" if version_1 else "inactive_file"
    reclaimable = _read_statistic(folder / "memory.stat", statistic)
    return max(0, limit - max(0, used - reclaimable))


def _cgroup_limits(proc: Path) -> list[tuple[int, Path, bool]]:
    """Each memory limit of the process, with its group's folder and whether that is version 1."""
    try:
        memberships = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return []
    limits = []
    for membership in memberships:
        _, controllers, path = (*membership.split(":", 2), "", "")[:3]
        if not path.startswith("/"):
            continue
        if controllers and "memory" not in controllers.split(","):
            continue
        version_1 = bool(controllers)
        file_name = "memory.limit_in_bytes" if version_1 else "memory.max"
        for folder in _folders(mounts, path, version_1=version_1):
            limit = _read_number(folder / file_name)
            if limit is not None:
                limits.append((limit, folder, version_1))
    return limits


def _folders(mounts: list[str], path: str, *, version_1: bool) -> list[Path]:
    """The group's folder and its parents, up to where the hierarchy is mounted."""
    for mount in mounts:
        # proc(5): id parent device root mount-point options [tags] - type source super-options
        left, _, right = (field.split() for field in mount.partition(" - "))
        if not right or right[0] != ("cgroup" if version_1 else "cgroup2"):
            continue
        if version_1 and "memory" not in right[-1].split(","):
            continue
        root, mount_point = left[3:5]
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
