"""What this process holds open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def of_processes() -> int:
    """Number of descriptors of processes that this process holds."""
    held = 0
    for file in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):  # the one that lists them
            held += b"\nPid:" in file.read_bytes()
    return held
