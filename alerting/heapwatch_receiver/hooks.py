"""Two hooks for the fault tests, off unless the environment sets them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_failpoint = os.environ.get("HEAPWATCH_RECEIVER_TEST_FAILPOINT")
_wall_offset_file = os.environ.get("HEAPWATCH_RECEIVER_TEST_WALL_OFFSET_FILE")


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL when the environment names this point."""
    if _failpoint == name:
        os.kill(os.getpid(), signal.SIGKILL)


def wall() -> float:
    """Seconds since the epoch; the hook shifts them by the seconds written in a file."""
    if _wall_offset_file is None:
        return time.time()
    return time.time() + float(Path(_wall_offset_file).read_text())
