"""Resident memory of a process that belongs to no file, and files of shared memory that it maps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from heapwatch.measure.process.procfs import read

_PARTS = re.compile(rb"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_MAPPED = re.compile(rb" /dev/shm/([^\n]+)")
SHARED_FILES = "/dev/shm"
_BLOCK = 512  # bytes: stat(2)


class ResidentParts(NamedTuple):
    """Resident bytes of a process: anonymous memory, and shared memory that it maps."""

    anonymous: int
    shared: int


def resident_parts(pid: int, proc: str = "/proc") -> ResidentParts | None:
    """The parts of a process; None for one that has ended, or is a zombie."""
    kilobytes = dict(_PARTS.findall(read(f"{proc}/{pid}/status")))
    if b"RssAnon" not in kilobytes:
        return None
    return ResidentParts(1024 * int(kilobytes[b"RssAnon"]), 1024 * int(kilobytes.get(b"RssShmem", 0)))


def mapped_files(pid: int | str, proc: str = "/proc") -> set[str]:
    """Names of the files in /dev/shm that a process maps, without those that were removed.

    Takes a millisecond for each few hundred mappings, in which the process cannot change them.
    """
    names = {name.decode(errors="replace") for name in _MAPPED.findall(read(f"{proc}/{pid}/maps"))}
    return {name for name in names if not name.endswith(" (deleted)")}


def bytes_of_files(names: Iterable[str]) -> int:
    """Bytes that files in /dev/shm take; 0 for those that are gone."""
    total = 0
    for name in names:
        with suppress(OSError):
            total += _BLOCK * os.stat(f"{SHARED_FILES}/{name}").st_blocks
    return total
