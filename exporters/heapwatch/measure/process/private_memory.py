"""Resident memory of a process that belongs to no file, and to nobody else."""

from __future__ import annotations

import re

from heapwatch.measure.process.procfs import read

_PRIVATE = re.compile(rb"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_RAY_WORKER = b"ray::"  # in front of the title of each


def private_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Resident bytes of a process that belong to no file; None for one that has ended, or is a zombie.

    Of Ray's processes shared memory does not count: it is the object store, which all of them map.
    """
    status = read(f"{proc}/{pid}/status")
    parts = {name: 1024 * int(kilobytes) for name, kilobytes in _PRIVATE.findall(status)}
    if parts.get(b"RssShmem") and (is_ray_worker(pid, proc) or is_raylet(pid, proc)):
        del parts[b"RssShmem"]
    return sum(parts.values()) if parts else None


def is_ray_worker(pid: int, proc: str = "/proc") -> bool:
    """Whether a process runs tasks or an actor of Ray, by the title that Ray gives it."""
    return read(f"{proc}/{pid}/cmdline").startswith(_RAY_WORKER)


def is_raylet(pid: int, proc: str = "/proc") -> bool:
    """Whether a process is the one that serves a node of a Ray cluster."""
    return read(f"{proc}/{pid}/cmdline").partition(b"\0")[0].endswith(b"/raylet")
