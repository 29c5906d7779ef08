"""Resident memory of a process that neither belongs to a file nor is shared through one."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from heapwatch.measure.process.procfs import read

_PRIVATE = re.compile(rb"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
SHARED_FILES = "/dev/shm"
LEAST_SHARED = 1_000_000  # bytes for which the files of shared memory are looked up
_MAPPED = re.compile(rb" /dev/shm/([^\n]+)")
_RAY_WORKER = b"ray::"  # in front of the title of each


def private_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Resident bytes of a process that belong to no file; None for one that has ended, or is a zombie.

    Of Ray's processes shared memory does not count: it is the object store, which all of them map.
    """
    parts = dict(_PRIVATE.findall(read(f"{proc}/{pid}/status")))
    if not parts:
        return None
    shared = 1024 * int(parts.get(b"RssShmem", 0))
    if shared and (is_ray_worker(pid, proc) or is_raylet(pid, proc)):
        shared = 0
    return 1024 * int(parts.get(b"RssAnon", 0)) + without_files(shared, pid, proc)


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


def is_ray_worker(pid: int, proc: str = "/proc") -> bool:
    """Whether a process runs tasks or an actor of Ray, by the title that Ray gives it."""
    return read(f"{proc}/{pid}/cmdline").startswith(_RAY_WORKER)


def is_raylet(pid: int, proc: str = "/proc") -> bool:
    """Whether a process is the one that serves a node of a Ray cluster."""
    return read(f"{proc}/{pid}/cmdline").partition(b"\0")[0].endswith(b"/raylet")
