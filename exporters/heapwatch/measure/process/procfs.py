"""Small files of Linux's process file system, by process id: proc(5)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

_READ_AT_ONCE = 65_536
_LONGEST_COMMAND = 4096
_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _PARENT, _STARTED = 0, 1, 19  # in /proc/PID/stat, behind the name
_PARTS = re.compile(rb"^(VmSize|RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_MAPPED = re.compile(rb" /dev/shm/([^\n]+)")
SHARED_FILES = "/dev/shm"
_BLOCK = 512  # bytes: stat(2)


def read(file: str, most: int | None = None) -> bytes:
    """The beginning of a file, all of it by default; empty if the process or the thread has ended.

    There is one for each thread of each process, and `Path.read_text` takes five times as long.
    """
    content = b""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while part := os.read(descriptor, most or _READ_AT_ONCE):
                content += part
                if most is not None and len(content) >= most:
                    break
        finally:
            os.close(descriptor)
    return content


def pids(proc: str = "/proc") -> list[int]:
    """The ids of all processes; empty where there is no such file system."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(proc) if name.isdigit()]
    return []


def children_of(pid: int, proc: str = "/proc") -> list[int]:
    """The children of a process. The kernel keeps a list for each thread (CONFIG_PROC_CHILDREN)."""
    children: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"{proc}/{pid}/task"):
            children += map(int, read(f"{proc}/{pid}/task/{task}/children").split())
    return children


def command_of(pid: int, proc: str = "/proc") -> list[str]:
    """The words of the command line, or the title that the program has given itself, without empty words."""
    text = read(f"{proc}/{pid}/cmdline", _LONGEST_COMMAND).decode(errors="replace")
    return [word for word in text.split("\0") if word]


def open_files(pid: int, proc: str = "/proc") -> Iterator[tuple[str, str]]:
    """The open files of a process: the name in procfs and the path; nothing of one that may not be read."""
    folder = f"{proc}/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                yield f"{folder}/{name}", os.readlink(f"{folder}/{name}")


class Status(NamedTuple):
    """What `/proc/PID/stat` tells: its name of at most 15 characters, its state, its parent, its start.

    The start is in seconds since the machine started, and tells processes with one id apart.
    """

    name: str
    state: str
    parent: int
    started: float


def status_of(pid: int, proc: str = "/proc") -> Status | None:
    """The status of a process; None for one that has ended."""
    head, _, tail = read(f"{proc}/{pid}/stat").decode(errors="replace").rpartition(")")
    fields = tail.split()
    if len(fields) <= _STARTED:
        return None
    name = head.partition("(")[2]
    return Status(name, fields[_STATE], int(fields[_PARENT]), int(fields[_STARTED]) / _TICKS)


class MemoryParts(NamedTuple):
    """Bytes of a process: its address space, and its resident anonymous and shared memory."""

    virtual: int
    anonymous: int
    shared: int


def memory_parts(pid: int | str, proc: str = "/proc") -> MemoryParts | None:
    """The memory of a process; None for one that has ended, or is a zombie."""
    found = {name: 1024 * int(kilobytes) for name, kilobytes in _PARTS.findall(read(f"{proc}/{pid}/status"))}
    if b"RssAnon" not in found:
        return None
    return MemoryParts(found.get(b"VmSize", 0), found[b"RssAnon"], found.get(b"RssShmem", 0))


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
