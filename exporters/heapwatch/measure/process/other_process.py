"""Another process: whether it still runs, and what it is called."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
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
    words, name = [], ""
    with suppress(psutil.Error):  # it may just have ended
        name = process.name()
        words = process.cmdline()
    return program_name(words, name) or str(process.pid)


def program_name(words: Sequence[str], name: str) -> str:
    """The name of the script or module in the command line of Python, else that of the program.

    Args:
        words: command line.
        name: name of the program's file.

    """
    script = ""
    options = iter(words[1:] if "python" in name else ())
    for word in options:
        if word in ("-X", "-W"):
            next(options, "")
        elif word == "-m":
            script = next(options, "")
        elif not word.startswith("-"):
            script = os.path.splitext(os.path.basename(word))[0]
        if script or word in ("-", "-c"):
            break
    return re.sub(r"[^\w.-]", "_", script or name)[:64]
