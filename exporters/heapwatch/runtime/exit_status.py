"""Whether this process ends well: its exit status is known only when Python's own code has ended."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from heapwatch.runtime.own_files import open_own


def append_exit_status(path: Path) -> bool:
    """Have the C library append one byte, the exit status, to a file when this process ends by `exit(3)`.

    That is every end but a signal and `os._exit`. Returns False where the C library is not glibc.

    Raises:
        OSError: the file cannot be written.

    """
    libc = ctypes.CDLL(None)
    on_exit = getattr(libc, "on_exit", None)
    if on_exit is None:
        return False
    libc.fdopen.restype = ctypes.c_void_p
    file = libc.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND), b"a")
    # It calls fputc(status, file), and then closes all files.
    return bool(file) and on_exit(libc.fputc, ctypes.c_void_p(file)) == 0


def uncaught() -> str:
    """Why the program failed, as far as the interpreter keeps it: not what is given to `sys.exit`."""
    error = getattr(sys, "last_type", None)
    return "" if error in (None, KeyboardInterrupt) else said(1)


def said(status: int) -> str:
    """The words for an exit status."""
    return f"exit status {status}"
