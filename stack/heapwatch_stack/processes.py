"""The processes of a stack: supervisord and its descendants have a mark in their environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

MARKER = "HEAPWATCH_STACK"
PATIENCE = 10.0


def of_stack(state: Path) -> list[psutil.Process]:
    """Every live process of the stack in `state`, except the calling one."""
    return [one for one in psutil.process_iter() if one.pid != os.getpid() and is_of_stack(one, state)]


def is_of_stack(process: psutil.Process, state: Path) -> bool:
    """Whether a process is alive and has the mark of the stack in `state`."""
    try:
        marked = process.environ().get(MARKER) == str(state)
        return marked and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False  # it has ended, or belongs to another user


def end_all(state: Path) -> list[psutil.Process]:
    """Terminate the stack's processes, and kill them after PATIENCE seconds; returns any that remain."""
    left = of_stack(state)
    for process in left:
        _quietly(process.terminate)
    _, left = psutil.wait_procs(left, timeout=PATIENCE)
    # list them again: new ones may have been started
    left = of_stack(state)
    for process in left:
        _quietly(process.kill)
    psutil.wait_procs(left, timeout=PATIENCE)
    return of_stack(state)


def listening(port: int) -> psutil.Process | None:
    """The process that listens on a TCP port; None if there is none or this user may not see it."""
    return next((process for process in psutil.process_iter() if _listens(process, port)), None)


def serves(pid: int, port: int) -> bool:
    """Whether this process, or one that it started, listens on a TCP port: another user may have taken it."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return False
    return any(_listens(one, port) for one in family)


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        connections = process.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in connections)


def _quietly(action: Callable[[], None]) -> None:
    with suppress(psutil.Error):
        action()
