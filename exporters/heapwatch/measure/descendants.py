"""The child processes of a process and their own memory, from a few small files of procfs."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from heapwatch.measure.housekeepers import is_housekeeper

_MOST = 512
_PRIVATE = ("RssAnon:", "RssShmem:")


def descendants(pid: int, proc: str = "/proc") -> list[int]:
    """Live children of a process and theirs, 512 at most; where the kernel does not list them, by psutil.

    Resource trackers and fork servers of multiprocessing are left out, their children are not.

    The kernel keeps a list of children for each thread (CONFIG_PROC_CHILDREN): reading these takes as long as
    there are threads, while psutil reads every process of the machine.
    """
    found: list[int] = []
    waiting = [pid]
    commands = {pid: ""}
    while waiting and len(found) < _MOST:
        parent = waiting.pop()
        try:
            tasks = os.listdir(f"{proc}/{parent}/task")
            texts = [Path(f"{proc}/{parent}/task/{task}/children").read_text() for task in tasks]
        except OSError:
            if parent == pid and not os.path.exists(f"{proc}/{pid}/task/{pid}/children"):
                return [child.pid for child in psutil.Process(pid).children(recursive=True)][:_MOST]
            continue
        for child in (int(child) for text in texts for child in text.split()):
            commands[child] = _command(child, proc)
            if not is_housekeeper(commands[child], commands[parent]):
                found.append(child)
            waiting.append(child)
    return found[:_MOST]


def private_bytes(pid: int, proc: str = "/proc") -> int | None:
    """Resident bytes of a process that belong to no file; None for one that has ended, or is a zombie."""
    try:
        lines = Path(f"{proc}/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = [1024 * int(line.split()[1]) for line in lines if line.startswith(_PRIVATE)]
    return sum(found) if found else None


def _command(pid: int, proc: str) -> str:
    try:
        return Path(f"{proc}/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""
