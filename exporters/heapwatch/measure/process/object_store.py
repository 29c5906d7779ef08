"""The memory of Ray's object store, which several processes map and which counts once."""

from __future__ import annotations

import os
from contextlib import suppress

from heapwatch.measure.process.procfs import open_files, status_of
from heapwatch.measure.process.ray_job import raylets

_FILE = "/dev/shm/plasma"  # of which Ray removes the name as soon as it is open
_BLOCK = 512  # bytes: stat(2)


class ObjectStore:
    """The stores of the Ray nodes on this machine, or of the one that this process has started.

    A raylet allocates its store in a file in memory, which it keeps open. Pages that were never used take
    none. Used ones stay when their objects are gone.

    Args:
        proc: where procfs is.

    Attributes:
        is_own: whether this process started it, by `ray.init()` without a cluster that ran before. Else other
            programs may fill it, too.

    """

    def __init__(self, proc: str = "/proc") -> None:
        self.is_own = False
        self._proc = proc
        self._files: list[str] = []

    def find(self) -> None:
        """Look for raylets, unless the own one is known: it may be started beside others."""
        if self.is_own and self.read() is not None:
            return
        all_raylets = raylets(self._proc)
        own_raylets = [
            pid
            for pid in all_raylets
            if (status := status_of(pid, self._proc)) and status.parent == os.getpid()
        ]
        self.is_own = bool(own_raylets)
        stores = {
            path: file
            for pid in own_raylets or all_raylets
            for file, path in open_files(pid, self._proc)
            if path.startswith(_FILE)
        }
        self._files = list(stores.values())

    def read(self) -> int | None:
        """Bytes of memory that they take; None where no store is known, or has ended."""
        sizes = []
        for file in self._files:
            with suppress(OSError):
                if os.readlink(file).startswith(_FILE):
                    sizes.append(os.stat(file).st_blocks * _BLOCK)
        return sum(sizes) if sizes else None
