"""A short read that one thread asks another to make."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from heapwatch.measure.introspection.alone import waits_in
from heapwatch.runtime.failures import is_trainers


class Request:
    """One read, made at most once.

    Args:
        read: is to take less than a millisecond, take no lock, and call no code of the program.
        cpu_clock: CPU seconds of the calling thread.

    Attributes:
        seconds: CPU seconds that the read took in the thread that made it.

    """

    def __init__(self, read: Callable[[], Any], cpu_clock: Callable[[], float] = time.thread_time) -> None:
        self.seconds = 0.0
        self._read = read
        self._cpu_clock = cpu_clock
        self._results: list[Any] = []
        self._made = threading.Lock()
        self._made.acquire(timeout=0)

    def make(self) -> None:
        """Make the read in the calling thread. Raises only errors of the program."""
        began = self._cpu_clock()
        try:
            self._results.append(self._read())
        except BaseException as error:
            if is_trainers(error):
                raise
        finally:
            self.seconds = self._cpu_clock() - began
            self._made.release()

    @waits_in
    def wait(self, seconds: float) -> Any:
        """The result; None if the read failed, or was not made within this time."""
        self._made.acquire(timeout=seconds)
        return self._results[0] if self._results else None
