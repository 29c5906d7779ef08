"""Requests: Python code in the memory of a process that its interpreter runs in a thread of its own.

The memory is mapped once and stays, because a pending call of the interpreter refers to it. That call may
come much later, or while the interpreter ends. It starts nothing unless the request is still wanted, and
clears its own mark. Later visits use the same memory.
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
# Whether it may still start; whether a pending call refers to it; whether a thread uses its text; the id of
# its process, as a fork copies the memory; and the sender.
_STATE = struct.Struct("<5Q")
_WANTED_OFFSET, _QUEUED_OFFSET = 0, 8
_TEXT_OFFSET = 64
_PROT_READ, _PROT_WRITE, _MAP_PRIVATE, _MAP_ANONYMOUS = 1, 2, 2, 32
_NO_FILE = 2**64 - 1
_LARGEST_ERROR = 4095  # a failed system call returns the negative of its error number
_PID = 2**32 - 1  # the lower half of a sender is its process id; a counter makes it unique
_numbers = itertools.count()
LONGEST = SIZE - _TEXT_OFFSET - 1


class _State(NamedTuple):
    wanted: int
    queued: int
    running: int
    owner: int
    sender: int


class Request:
    """Python code for a process to run.

    Args:
        pid: the process.
        memory: the memory of its program.
        functions: addresses by name, including `Py_AddPendingCall` and `machine_code.FUNCTIONS`.
        text: the code; it must raise nothing, and do nothing once the sender no longer waits.

    """

    def __init__(self, pid: int, memory: Memory, functions: Mapping[str, int], text: str) -> None:
        self._pid = pid
        self._memory = memory
        self._functions = functions
        self._text = text.encode("ascii") + b"\0"
        if len(self._text) > SIZE - _TEXT_OFFSET:
            raise ValueError(
                f"a request has at most {LONGEST} characters, got {len(text)}: use shorter paths"
            )
        self._sender = next(_numbers) << 32 | os.getpid()
        self._address: int | None = None

    def queue(self, thread: Tracee) -> None:
        """Let the main thread start it between two byte codes.

        Raises:
            NotStopped: the interpreter takes no further call, or no memory is left.

        """
        code = thread.code(self._functions)
        address = self._place(thread, code)
        if not self._state_at(address).queued:
            if thread.call(self._functions["Py_AddPendingCall"], code.queued, address) & 0xFFFFFFFF:
                self.withdraw()
                raise NotStopped("has too many pending calls; try again")
            self._memory.write(address + _QUEUED_OFFSET, _as_bytes(1))

    def begin(self, thread: Tracee) -> None:
        """Let the main thread, which waits outside of the interpreter, start it now; see `queue`."""
        code = thread.code(self._functions)
        thread.call(code.begin, self._place(thread, code))

    def withdraw(self) -> None:
        """Prevent a later pending call from starting it."""
        if self._address is not None:
            with suppress(OSError, NotStopped):  # the process has ended
                state = self._state_at(self._address)
                if state.wanted and state.sender == self._sender:  # otherwise it has begun
                    self._memory.write(self._address + _WANTED_OFFSET, _as_bytes(0))

    def _place(self, thread: Tracee, code: Code) -> int:
        """Return the address of the request; the first call writes it into the process."""
        if self._address is None:
            address = self._free(self._requests(thread, code))
            queued = self._state_at(address).queued
            self._memory.write(address + _WANTED_OFFSET, _as_bytes(0))
            self._memory.write(address + _TEXT_OFFSET, self._text)
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
            self._memory.write(code.requests, _as_bytes(address))
        return address

    def _free(self, requests: int) -> int:
        """Return the first slot that no running command waits for and no thread of this process uses."""
        for address in range(requests, requests + COUNT * SIZE, SIZE):
            state = self._state_at(address)
            if state.owner != self._pid or not (
                state.running or (state.wanted and Path(f"/proc/{state.sender & _PID}").exists())
            ):
                return address
        raise NotStopped("is being entered by other commands; try again")

    def _state_at(self, address: int) -> _State:
        return _State(*_STATE.unpack(self._memory.read(address, _STATE.size)))


def _as_bytes(value: int) -> bytes:
    return value.to_bytes(8, "little")
