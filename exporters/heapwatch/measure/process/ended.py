"""Exit status of another process, which need not be a child of this one.

Linux reports it until the parent has waited for the process; from 6.15 on also afterwards.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from heapwatch.measure.process.procfs import read

_UNKNOWN = "unknown"
# Signals that request termination: from `Pool.terminate()`, a terminal or a scheduler.
ASKED_TO_END = ("SIGTERM", "SIGINT", "SIGHUP")
_BY_CODE = "exit code "
# From linux/pidfd.h: PIDFD_GET_INFO, PIDFD_INFO_EXIT, and of `struct pidfd_info` the mask and the exit code.
_GET_INFO, _EXIT, _INFO = 0xC040FF0B, 1 << 3, struct.Struct("=Q52xi")
_STATE, _EXIT_CODE = 0, 49  # in /proc/PID/stat behind the name


class Ending(NamedTuple):
    """How a process ended; neither field is set where that is not known.

    Attributes:
        signal: number of the signal that killed it.
        code: its exit code.

    """

    signal: int | None = None
    code: int | None = None

    @property
    def how(self) -> str:
        """Such as `SIGSEGV`, `exit code 3` or `unknown`."""
        if self.signal is not None:
            with suppress(ValueError):
                return signal.Signals(self.signal).name
            return f"signal {self.signal}"
        return _UNKNOWN if self.code is None else f"{_BY_CODE}{self.code}"

    @property
    def is_failure(self) -> bool:
        """Whether it may have died: all but exit code 0."""
        return self.code != 0

    def said(self, when: str = "") -> str:
        """What follows the name of the process: "was killed by SIGSEGV during the visit (signal 11)"."""
        suffix = f" {when}" if when else ""
        if self.signal is not None:
            return f"was killed by {self.how}{suffix} (signal {self.signal})"
        if self.code is None:
            return f"has ended{suffix}; how is not known"
        return f"ended with {self.how}{suffix}" if self.code else f"ended by itself{suffix} (exit code 0)"


def open_pidfd(pid: int) -> int | None:
    """Open a pidfd of a process, which becomes readable at its end and is not inherited.

    None before Linux 5.3, if the process has ended, or if no further file can be opened.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def is_pidfd_of(descriptor: int, pid: int) -> bool:
    """Whether a number is still the descriptor that was opened of a process.

    A program may close all that it does not know, and open a file that gets the number.
    """
    lines = read(f"/proc/self/fdinfo/{descriptor}").splitlines()
    return b"Pid:\t%d" % pid in lines or b"Pid:\t-1" in lines


def close_pidfd(descriptor: int, pid: int) -> None:
    """Close a pidfd, unless its number now belongs to another file."""
    if is_pidfd_of(descriptor, pid):
        os.close(descriptor)


def ended_among(descriptors: Collection[int], seconds: float = 0.0) -> list[int]:
    """The descriptors that are closed or whose process has ended; waits up to `seconds` for the first."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(1000 * seconds)]


def ending_of(pid: int, descriptor: int | None = None) -> Ending:
    """How a process has ended; its status stays for its parent.

    Args:
        pid: the process, which has ended.
        descriptor: the result of `open_pidfd` for it.

    """
    status = _of_zombie(pid)
    if status is None:
        status = _after_wait(descriptor)
    if status is None:
        return Ending()
    return Ending(signal=status & 0x7F) if status & 0x7F else Ending(code=status >> 8 & 0xFF)


def _after_wait(descriptor: int | None) -> int | None:
    if descriptor is None:
        return None
    info = bytearray(_INFO.pack(_EXIT, 0))
    try:
        fcntl.ioctl(descriptor, _GET_INFO, info)
    except OSError:
        return None
    mask, status = _INFO.unpack(info)
    return status if mask & _EXIT else None


def _of_zombie(pid: int) -> int | None:
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if fields[_STATE] != b"Z":
            return None
        return int(fields[_EXIT_CODE])
    except (LookupError, ValueError):
        return None
