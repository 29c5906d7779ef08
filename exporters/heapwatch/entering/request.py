"""Requests: texts that lie in the memory of a process until its interpreter runs one in a thread of its own.

The memory is taken once and stays, since a pending call of the interpreter refers to it: it may come in a
minute, in a day, or while the interpreter ends. A call begins nothing unless a request is still wanted, and
says by itself that it came. Later visits use the same memory.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from heapwatch.entering.machine_code import Code
from heapwatch.entering.ptrace import Memory, NotStopped, Tracee

COUNT, SIZE = 4, 8192
# Whether it is still to begin; whether a pending call refers to it; whether a thread uses its text; for which
# process it is, as a fork copies all of this; and who waits for it.
_STATE = struct.Struct("<5Q")
_WANTED, _QUEUED = 0, 8
_TEXT = 64
_PROT_READ, _PROT_WRITE, _MAP_PRIVATE, _MAP_ANONYMOUS = 1, 2, 2, 32
_NO_FILE = 2**64 - 1
_LARGEST_ERROR = 4095  # of a system call, whose result is then negative
_PID = 2**32 - 1  # what of a sender is its process; the rest makes it unique
_numbers = itertools.count()
LONGEST = SIZE - _TEXT - 1


class _State(NamedTuple):
    wanted: int
    queued: int
    running: int
    owner: int
    sender: int


class Request:
    """A text in a process.

    Args:
        pid: the process.
        memory: that of the program that it runs.
        functions: addresses by name, `Py_AddPendingCall` and those of `machine_code.FUNCTIONS` among them.
        text: what the interpreter is to run; it must raise nothing, and do nothing once nobody waits.

    """

    def __init__(self, pid: int, memory: Memory, functions: Mapping[str, int], text: str) -> None:
        self._pid = pid
        self._memory = memory
        self._functions = functions
        self._text = text.encode("ascii") + b"\0"
        if len(self._text) > SIZE - _TEXT:
            raise ValueError(
                f"a request has at most {LONGEST} characters, got {len(text)}: use shorter paths"
            )
        self._sender = next(_numbers) << 32 | os.getpid()
        self._address: int | None = None

    def queue(self, thread: Tracee) -> None:
        """Have the main thread begin it between two byte codes.

        Raises:
            NotStopped: the interpreter takes no further call, or no memory is left.

        """
        code = thread.code(self._functions)
        address = self._place(thread, code)
        if not self._state_at(address).queued:
            if thread.call(self._functions["Py_AddPendingCall"], code.queued, address) & 0xFFFFFFFF:
                self.withdraw()
                raise NotStopped("has too many pending calls; try again")
            self._memory.write(address + _QUEUED, _word(1))

    def begin(self, thread: Tracee) -> None:
        """Have the main thread begin it now, which waits outside of the interpreter; see `queue`."""
        code = thread.code(self._functions)
        thread.call(code.begin, self._place(thread, code))

    def withdraw(self) -> None:
        """A call that comes later begins nothing."""
        if self._address is not None:
            with suppress(OSError, NotStopped):  # the process has ended
                state = self._state_at(self._address)
                if state.wanted and state.sender == self._sender:  # otherwise it has begun
                    self._memory.write(self._address + _WANTED, _word(0))

    def _place(self, thread: Tracee, code: Code) -> int:
        """Put the text into the process, the first time."""
        if self._address is None:
            address = self._free(self._requests(thread, code))
            queued = self._state_at(address).queued
            self._memory.write(address + _WANTED, _word(0))
            self._memory.write(address + _TEXT, self._text)
            self._memory.write(address, _STATE.pack(*_State(1, queued, 0, self._pid, self._sender)))
            self._address = address
        return self._address

    def _requests(self, thread: Tracee, code: Code) -> int:
        address = int.from_bytes(self._memory.read(code.requests, 8), "little")
        if not address:
            kind, protection = _MAP_PRIVATE | _MAP_ANONYMOUS, _PROT_READ | _PROT_WRITE
            address = thread.call(code.map_memory, 0, COUNT * SIZE, protection, kind, _NO_FILE, 0)
            error = -ctypes.c_int64(address).value
            if 0 < error <= _LARGEST_ERROR:
                raise NotStopped(f"has no memory left: {os.strerror(error)}")
            self._memory.write(code.requests, _word(address))
        return address

    def _free(self, requests: int) -> int:
        """The first that neither a living command waits for nor a thread of this process uses."""
        for address in range(requests, requests + COUNT * SIZE, SIZE):
            state = self._state_at(address)
            if state.owner != self._pid or not (
                state.running or (state.wanted and Path(f"/proc/{state.sender & _PID}").exists())
            ):
                return address
        raise NotStopped("is being entered by other commands; try again")

    def _state_at(self, address: int) -> _State:
        return _State(*_STATE.unpack(self._memory.read(address, _STATE.size)))


def _word(value: int) -> bytes:
    return value.to_bytes(8, "little")
