"""Detects whether and how a process ends while a command is inside it, or right after that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from heapwatch.measure.process.ended import Ending, close_pidfd, ended_among, ending_of, open_pidfd
from heapwatch.measure.process.other_process import is_alive, name_of

if TYPE_CHECKING:
    from typing_extensions import Self

DIED = 4
DIED_MEANS = "a process that was entered died meanwhile or right after that, or ended in an unknown way"
SOON_SECONDS = 1.0  # after a visit
_POLL_SECONDS = 0.05


class Ended(Exception):
    """The process ended while a command was inside it, or right after that; the message says how.

    Attributes:
        exit_code: of the command: DIED, or 0 if the process ended by itself.

    """

    def __init__(self, text: str, ended: Ending) -> None:
        super().__init__(text)
        self.exit_code = DIED if ended.is_failure else 0


class Followed:
    """A context manager that notices the end of a process: by an event of the system, else by polling.

    Args:
        process: the process.
        name: printed with its process id; by default the name of its script or program.

    Attributes:
        name: the printed name.

    """

    def __init__(self, process: psutil.Process, name: str = "") -> None:
        self._process = process
        self.name = name or name_of(process)
        self._descriptor = open_pidfd(process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            close_pidfd(descriptor, self._process.pid)

    def ended_within(self, seconds: float) -> Ending | None:
        """Wait up to `seconds` for the end of the process; return how it ended, or None if it still runs."""
        return ending_of(self._process.pid, self._descriptor) if self._ends_within(seconds) else None

    def said(self, ended: Ending, when: str) -> str:
        """Return a sentence: "process 4711 (train) was killed by SIGSEGV during the visit (signal 11)"."""
        return f"process {self._process.pid} ({self.name}) {ended.said(when)}"

    def end(self, when: str) -> Ended | None:
        """Return its end if it ends within a second; `when` describes in words when that was."""
        ended = self.ended_within(SOON_SECONDS)
        return None if ended is None else Ended(self.said(ended, when), ended)

    def _ends_within(self, seconds: float) -> bool:
        if self._descriptor is not None:
            return bool(ended_among([self._descriptor], seconds))
        deadline = time.monotonic() + seconds
        while is_alive(self._process):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True
