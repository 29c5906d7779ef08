"""The resident memory of this process, read cheaply, and the limit that would kill it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class ResidentMemory:
    """Reads this process's RSS through a kept descriptor of `/proc/self/statm`, else through psutil.

    After a fork the descriptor still shows the parent: call `reopen` in the child.
    """

    def __init__(self, statm: str = "/proc/self/statm") -> None:
        self._statm = statm
        self._descriptor = -1
        self.reopen()

    def reopen(self) -> None:
        """Look at the process that calls."""
        self.close()
        try:
            self._descriptor = os.open(self._statm, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def read(self) -> int:
        """Resident bytes."""
        try:
            return int(os.pread(self._descriptor, 128, 0).split()[1]) * _PAGE_BYTES
        except (OSError, IndexError, ValueError):
            return int(psutil.Process().memory_info().rss)


def memory_limit(proc: Path = Path("/proc/self"), physical: int | None = None) -> int:
    """Bytes at which this process is killed: the tightest cgroup limit above it (v2 and v1), else the RAM.

    Args:
        proc: the process's folder in procfs.
        physical: bytes of RAM; asked of the system when not given.

    """
    ram = int(psutil.virtual_memory().total) if physical is None else physical
    return min([ram, *_cgroup_limits(proc)])


def _cgroup_limits(proc: Path) -> list[int]:
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
        file_name = "memory.limit_in_bytes" if controllers else "memory.max"
        for folder in _folders(mounts, path, version_1=bool(controllers)):
            limit = _read_limit(folder / file_name)
            if limit is not None:
                limits.append(limit)
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


def _read_limit(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
