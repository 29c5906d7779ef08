"""The memory of Ray's object store, which several processes map and which counts once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from heapwatch.measure.process.process_tree import is_raylet

_FILE = "/dev/shm/plasma"  # of which Ray removes the name as soon as it is open
_BLOCK = 512  # bytes: stat(2)


class ObjectStore:
    """The store of a Ray node that this process has started: `ray.init()` without a cluster that runs.

    The raylet allocates it in a file in memory, which it keeps open. Pages that were never used take none.
    Used ones stay when their objects are gone. The store of a cluster that was there before is not looked
    for: other programs may fill it.

    Args:
        proc: where procfs is.

    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._file: str | None = None

    def find(self, children: Iterable[int]) -> None:
        """Look for the raylet among the processes that this one has started, unless it is known."""
        if self.read() is not None:
            return
        raylets = (pid for pid in children if is_raylet(pid, self._proc))
        self._file = next(filter(None, map(self._file_of, raylets)), None)

    def read(self) -> int | None:
        """Bytes of memory that it takes; None where it is not known, or has ended."""
        if self._file is not None:
            with suppress(OSError):
                if os.readlink(self._file).startswith(_FILE):
                    return os.stat(self._file).st_blocks * _BLOCK
        return None

    def _file_of(self, raylet: int) -> str | None:
        folder = f"{self._proc}/{raylet}/fd"
        with suppress(OSError):
            for name in os.listdir(folder):
                with suppress(OSError):
                    if os.readlink(f"{folder}/{name}").startswith(_FILE):
                        return f"{folder}/{name}"
        return None
