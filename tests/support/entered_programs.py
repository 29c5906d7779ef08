"""Programs that are entered: processes of an interpreter that has no Heapwatch and no packages."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heapwatch.entering.entered_process import EnteredProcess

LEAKING = """
    import time
    history = []
    print("ready", flush=True)
    while True:
        history.append(bytearray(1000))
        time.sleep(0.001)
"""

# Ends in its own way once Heapwatch has been at work in it for so long, or has left it.
ENDING = """
    import os, signal, sys, threading, time
    print("ready", flush=True)
    while threading.active_count() == 1:
        time.sleep(0.001)
    until = time.monotonic() + {seconds}
    while time.monotonic() < until and threading.active_count() > 1:
        time.sleep(0.001)
    if threading.active_count() == 1:
        time.sleep(0.3)
    {end}
"""
ENTERED, LEFT = 0, 60  # seconds
SERVED = {"name": "robots", "host": "127.0.0.1", "port": 0}
CRASHES = "os.kill(os.getpid(), signal.SIGSEGV)"


@contextmanager
def program(
    code: str, tmp_path: Path, *options: str, first_line: Callable[[str], object] = str
) -> Iterator[subprocess.Popen[str]]:
    """A running program, from the moment when it has printed its first line, which `first_line` gets."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(code))
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, *(options or ("-I", "-S")), str(script)],
        env={**kept, "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first_line(process.stdout.readline())
        try:
            yield process
        finally:
            process.kill()


def ask(pid: int, action: str, **details: Any) -> dict[str, Any]:
    with EnteredProcess(pid) as entered:
        return entered.ask(action, **details)
