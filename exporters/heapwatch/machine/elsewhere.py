"""The machines of a Ray cluster that the watch of a driver does not see."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable

from heapwatch.measure.process.ray_job import driven_job
from heapwatch.runtime.failures import raised

log = logging.getLogger("heapwatch")
_EVERY_SECONDS = 300.0


class OtherMachines:
    """Asks Ray for the nodes of the cluster, in a thread of its own: an answer may take a minute.

    Args:
        clock: monotonic seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = float("-inf")
        self._thread: threading.Thread | None = None
        self._count = 0

    def count(self) -> int:
        """How many there are, as last known; 0 in a process that drives no job."""
        now = self._clock()
        if (
            now >= self._due
            and "ray" in sys.modules
            and (self._thread is None or not self._thread.is_alive())
        ):
            self._due = now + _EVERY_SECONDS
            if driven_job(os.getpid()) is not None:
                self._thread = threading.Thread(target=self._ask, name="heapwatch-nodes", daemon=True)
                self._thread.start()
        return self._count

    def _ask(self) -> None:
        ray = sys.modules["ray"]
        try:
            if ray.is_initialized():
                names = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
                self._count = len(names - {socket.gethostname()})
        except Exception as error:  # another version of Ray, or a cluster that ends
            log.debug("heapwatch: the nodes of the cluster are not known: %s", raised(error))
