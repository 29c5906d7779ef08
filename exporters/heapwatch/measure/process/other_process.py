"""Another process: whether it still runs, and what it is called."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; a zombie does not, and another process with its pid is not it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def name_of(process: psutil.Process) -> str:
    """Return the name of Python's script or module, else the program's; other words may be secret."""
    try:
        words = iter(process.cmdline()[1:] if "python" in process.name() else ())
    except psutil.Error:
        words = iter(())
    name = ""
    for word in words:
        if word in ("-X", "-W"):
            next(words, "")
        elif word == "-m":
            name = next(words, "")
        elif not word.startswith("-"):
            name = os.path.splitext(os.path.basename(word))[0]
        if name or word in ("-", "-c"):
            break
    if not name:
        with suppress(psutil.Error):  # it may just have ended
            name = process.name()
    return re.sub(r"[^\w.-]", "_", name)[:64] or str(process.pid)
