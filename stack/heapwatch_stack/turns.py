"""Files that one process has at a time. Standard library only."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO, Any

from heapwatch_stack.errors import StackError

TURN_SECONDS = 1800.0  # a download over a slow line
_POLL_SECONDS = 0.1


def take_turn(file: IO[Any], path: Path, seconds: float = TURN_SECONDS) -> None:
    """Lock a file until it is closed, as soon as no other process has it.

    Raises:
        StackError: another process has had it for all of the time.

    """
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise StackError(f"another process has held {path} for {seconds:.0f} s: end it") from None
            time.sleep(_POLL_SECONDS)
        else:
            return
