"""The processes of a stack: supervisord and its descendants have its address in their environment."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from heapwatch_stack.errors import StackError

MARKER = "SUPERVISOR_SERVER_URL"  # which supervisord itself gives to what it starts
PATIENCE = 10.0
# supervisord first binds PATH.PID; the kernel allows 107 bytes
LONGEST_SOCKET_PATH = 95


def socket_path(state: Path) -> Path:
    """The socket of supervisord: in `state`, or in a private temporary folder if that path is too long.

    Raises:
        StackError: there is such a folder, but others can write in it.

    """
    inside = state / "run" / "supervisor.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    name = hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"heapwatch-{os.getuid()}-{name}"
    with suppress(FileNotFoundError):
        owner = folder.lstat()
        if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.getuid() or owner.st_mode & 0o077:
            raise StackError(
                f"{folder} is not a private folder of yours: "
                "remove it, or set HEAPWATCH_STATE to a shorter path"
            )
    return folder / "supervisor.sock"


def mark(state: Path) -> dict[str, str]:
    """The variable that every process of the stack in `state` has."""
    return {MARKER: f"unix://{socket_path(state)}"}


def of_stack(state: Path) -> list[psutil.Process]:
    """Every live process of the stack in `state`, except the calling one."""
    address = mark(state)[MARKER]
    return [one for one in psutil.process_iter() if one.pid != os.getpid() and _has_mark(one, address)]


def _has_mark(process: psutil.Process, address: str) -> bool:
    try:
        return process.environ().get(MARKER) == address and process.status() != psutil.STATUS_ZOMBIE
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


def _quietly(action: Callable[[], None]) -> None:
    with suppress(psutil.Error):
        action()
