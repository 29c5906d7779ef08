"""Chooses the thread that may read what only the training thread changes, and asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from heapwatch.runtime.main_thread import MainThread
from heapwatch.runtime.safe_point import SafePoint

# A single operation of torch rarely takes longer; while it lasts, no byte code is reached.
_SECONDS = 0.25


class OwnedReads:
    """Reads in the thread that calls `watch.step()`, and without one in the main thread.

    Args:
        safe_point: knows who steps; None where nobody can.

    """

    def __init__(self, safe_point: SafePoint | None = None) -> None:
        self._safe_point = safe_point
        self._main_thread = MainThread()

    @property
    def seconds(self) -> float:
        """CPU seconds that these reads took in the threads of the program."""
        stepped = self._safe_point.answering_seconds if self._safe_point is not None else 0.0
        return self._main_thread.seconds + stepped

    def ask(self, read: Callable[[], Any]) -> Any:
        """The result of a read that takes less than a millisecond; None if it was not made, or failed."""
        owner = None if self._safe_point is None else self._safe_point.stepping_thread()
        if self._safe_point is None or owner in (None, threading.main_thread()):
            return self._main_thread.ask(read, _SECONDS)
        return self._safe_point.ask(read, _SECONDS)

    def abandon(self) -> None:
        """In a forked child: nothing that the parent asked is answered."""
        self._main_thread.abandon()
