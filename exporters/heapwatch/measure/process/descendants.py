"""The child processes of a process and their own memory, from a few small files of procfs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from heapwatch.measure.process.helper_processes import is_housekeeper

_PRIVATE = ("RssAnon:", "RssShmem:")


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
    try:
        lines = Path(f"{proc}/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = [1024 * int(line.split()[1]) for line in lines if line.startswith(_PRIVATE)]
    return sum(found) if found else None


def _children(pid: int, proc: str) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"{proc}/{pid}/task"):
            with suppress(OSError):  # a thread that has ended meanwhile has no children
                found += map(int, Path(f"{proc}/{pid}/task/{task}/children").read_text().split())
    return found


def _command(pid: int, proc: str) -> str:
    try:
        return Path(f"{proc}/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


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
