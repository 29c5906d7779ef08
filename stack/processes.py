"""The processes of a stack: supervisord and its descendants have a mark in their environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

MARKER = "HEAPWATCH_STACK"


def of_stack(state: Path) -> list[psutil.Process]:
    """Every live process of the stack in `state`, except the calling one."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(MARKER) == str(state)
            if marked and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # it has ended, or belongs to another user
    return found


def end_all(state: Path, patience: float = 10) -> list[psutil.Process]:
    """Terminate the stack's processes, and kill them after `patience` seconds; returns any that remain."""
    left = of_stack(state)
    for process in left:
        _quietly(process.terminate)
    _, left = psutil.wait_procs(left, timeout=patience)
    # list them again: new ones may have been started
    left = of_stack(state)
    for process in left:
        _quietly(process.kill)
    psutil.wait_procs(left, timeout=patience)
    return of_stack(state)


def listening(port: int) -> psutil.Process | None:
    """The process that listens on a TCP port; None if there is none or this user may not see it."""
    for process in psutil.process_iter():
        try:
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return process
        except (psutil.Error, OSError):
            continue
    return None


def _quietly(action: Callable[[], None]) -> None:
    with suppress(psutil.Error):
        action()
