"""Calls of C functions in the main thread of another process, by `ptrace` (Linux on x86-64).

The thread is stopped for about a millisecond, if possible at a system call, where it is in no function that
holds a lock of the interpreter. An interrupted system call continues afterwards. No byte of a function
changes. One system call changes the registers; after that the thread restores itself (`machine_code`), so the
tracer may be killed at any moment.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import resource
import signal
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from heapwatch.entering.elf import mappings, unused_code
from heapwatch.entering.machine_code import (
    FUNCTIONS,
    RED_ZONE,
    SIZE,
    Code,
    Frame,
    code_with,
    frame,
    header,
    place_in,
)

if TYPE_CHECKING:
    from typing_extensions import Self

_PTRACE_CONT, _PTRACE_DETACH, _PTRACE_SYSCALL, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 7, 17, 24, 0x4206, 0x4207
_PTRACE_GETREGSET, _PTRACE_SETREGSET = 0x4204, 0x4205
_PTRACE_O_TRACESYSGOOD = 1
_PTRACE_EVENT_STOP = 128
_NT_PRSTATUS = 1
_REGISTER_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_REGISTERS = struct.Struct(f"<{len(_REGISTER_NAMES)}Q")
_INTERRUPTS_ENABLED = 0x202  # eflags of a function that begins
_NO_CALL = 2**64 - 1
_SYSCALL_INSTRUCTION = b"\x0f\x05"
_SYS_GETPID, _SYS_RESTART_SYSCALL = 39, 219
# read, write, poll, select, pause, nanosleep, accept, sendto, recvfrom, sendmsg, recvmsg, wait4, semop,
# msgrcv, fcntl, flock, rt_sigtimedwait, rt_sigsuspend, futex, restart_syscall, semtimedop, clock_nanosleep,
# epoll_wait, waitid, pselect6, ppoll, epoll_pwait, accept4, epoll_pwait2
_WAITING_SYSCALLS = {
    *(0, 1, 7, 23, 34, 35, 43, 44, 45, 46, 47, 61, 65, 70, 72, 73, 128, 130, 202, 219, 220, 230, 232, 247),
    *(270, 271, 281, 288, 441),
}
# The kernel sets rax to one of these if it will restart an interrupted call (include/linux/errno.h).
_ERESTARTSYS, _ERESTARTNOINTR, _ERESTARTNOHAND, _ERESTART_RESTARTBLOCK = 512, 513, 514, 516
# A stop ends these with EINTR (signal(7)). By system call number: the register of the timeout, and its value
# for no timeout.
_EINTR_WITH_TIMEOUT = {
    232: ("r10", 2**32 - 1),  # epoll_wait
    281: ("r10", 2**32 - 1),  # epoll_pwait
    441: ("r10", 0),  # epoll_pwait2
    128: ("rdx", 0),  # rt_sigtimedwait
    220: ("r10", 0),  # semtimedop
}
# A stop also ends semop, and calls on a socket with a timeout (SO_RCVTIMEO, SO_SNDTIMEO), which restarts:
# read, write, readv, writev, connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg,
# sendmmsg.
_RESTARTED_AFTER_EINTR = {65, 0, 1, 19, 20, 42, 43, 44, 45, 46, 47, 288, 299, 307}
_WALL = 0x40000000  # __WALL
_STOP_SECONDS = 5.0
_OTHERS_SECONDS, _TRIES = 3.0, 3
_SYSCALL_SECONDS = 0.1
_RUN_SECONDS = 5.0
_POLL_SECONDS = 0.0001
_STACK_BYTES = 32768  # for the called function

IS_SUPPORTED = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")


class NotStopped(Exception):
    """The thread could not be stopped, or ended; the message says why, after the words `process N`."""


def tracer_of(pid: int) -> int:
    """Return the id of the process that traces this one; 0 if none does."""
    match = re.search(r"^TracerPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(errors="replace"), re.M)
    return int(match[1]) if match else 0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class Memory:
    """The memory of the program that a process runs now; it is gone once the process executes another one.

    Args:
        pid: of a process that this user may trace.

    Raises:
        OSError: it has ended, or this user may not trace it.

    """

    def __init__(self, pid: int) -> None:
        # The kernel binds this file to the memory, not to the process (proc(5), exec frees the memory).
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address; raises NotStopped where the memory is gone."""
        content = os.pread(self._file, size, address)
        if len(content) < size:
            raise NotStopped("has ended, or runs another program now")
        return content

    def write(self, address: int, content: bytes) -> None:
        """Change bytes; raises NotStopped where the memory is gone."""
        if os.pwrite(self._file, content, address) < len(content):
            raise NotStopped("has ended, or runs another program now")


class Tracee:
    """The main thread of a process, stopped inside a `with` block. One thread must run the whole block.

    Args:
        pid: of a process that this user may trace.
        memory: the memory of its program.

    Raises:
        NotStopped: the thread could not be stopped, or ended.
        PermissionError: this user may not trace it, or another program does.

    """

    def __init__(self, pid: int, memory: Memory) -> None:
        self._pid = pid
        self.memory = memory
        self._code: Code | None = None
        self._frame: Frame | None = None

    def __enter__(self) -> Self:
        self._seize()
        try:
            self._stop()
            self._saved = self._get()
            self.memory.read(self._saved["rip"], 1)  # raises if it runs another program now
            self._in_call = self._is_in_call(self._saved)
        except BaseException:
            with suppress(NotStopped, OSError):  # the kernel detaches when the tracing thread ends
                self._ptrace(_PTRACE_DETACH)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._ptrace(_PTRACE_DETACH)
        except NotStopped:
            if kind is None:
                raise

    def waits(self) -> bool:
        """Whether the thread waits in a system call; then it holds no lock of an allocator."""
        return self._in_call and self._saved["orig_rax"] in _WAITING_SYSCALLS

    def code(self, functions: Mapping[str, int]) -> Code:
        """Return the machine code in the process; the first call writes it there.

        Args:
            functions: addresses of `machine_code.FUNCTIONS`.

        Raises:
            NotStopped: no library has room for it.

        """
        if not _has_xsave():
            raise NotStopped("runs on a processor without the instruction XSAVE")
        for start, end in unused_code(self._pid):
            place = place_in(self.memory.read(start, end - start), start) if end - start >= SIZE else None
            if place is not None:
                address, is_there = place
                if not is_there:
                    self.memory.write(address, code_with({name: functions[name] for name in FUNCTIONS}))
                self._code = Code(address)
                return self._code
        raise NotStopped("has no room for the code of a visit in its libraries")

    def call(self, function: int, *arguments: int) -> int:
        """Call a function that does not block, and return its unsigned 64-bit result; `code` must come first.

        Raises:
            NotStopped: it did not return within five seconds, or the thread has ended.

        """
        if self._code is None:
            raise ValueError("the code has to be there first")
        is_first = self._frame is None
        prepared = self._frame or self._new_frame()
        self.memory.write(prepared.address, header(function, arguments, prepared.registers))
        start = self._code.call_function if is_first else self._code.call_again
        # Atomic for the thread: before this it is unchanged, after this it restores itself.
        self._set(
            {**self._saved, "rip": start, "rbx": prepared.address, "rsp": prepared.address}
            | {"eflags": _INTERRUPTS_ENABLED, "rax": 0, "orig_rax": _NO_CALL}
        )
        self._frame = prepared
        self._run_to_gate(self._code.gate, prepared)
        return int.from_bytes(self.memory.read(prepared.result, 8), "little")

    def read_text(self, address: int, longest: int) -> str:
        """Return the C string at an address."""
        return self.memory.read(address, longest).split(b"\0")[0].decode("ascii", "replace")

    def _new_frame(self) -> Frame:
        """Write a frame onto the stack, after which the thread continues where it was interrupted."""
        registers = dict(self._saved)
        if self._in_call and (number := self._restarted_call()) is not None:
            registers |= {"rax": number, "rip": registers["rip"] - len(_SYSCALL_INSTRUCTION)}
        new = frame(registers)
        if self._stack_space_below(registers["rsp"]) < len(new.content) + RED_ZONE + _STACK_BYTES:
            raise NotStopped("has no room left on the stack of its main thread; try again")
        self.memory.write(new.address, new.content)
        return new

    def _restarted_call(self) -> int | None:
        """Return the number of the system call to restart; None if the call has ended."""
        number = self._saved["orig_rax"]
        result = -ctypes.c_int64(self._saved["rax"]).value
        if result == _ERESTART_RESTARTBLOCK:
            return _SYS_RESTART_SYSCALL
        if result in (errno.ENOSYS, _ERESTARTSYS, _ERESTARTNOINTR, _ERESTARTNOHAND):  # ENOSYS: not yet made
            return number
        if result == errno.EINTR and number in _RESTARTED_AFTER_EINTR:
            return number
        if result == errno.EINTR and number in _EINTR_WITH_TIMEOUT:
            register, no_timeout = _EINTR_WITH_TIMEOUT[number]
            value = self._saved[register]
            return number if no_timeout == (value & 0xFFFFFFFF if no_timeout else value) else None
        return None

    def _stack_space_below(self, stack_pointer: int) -> int:
        """Return the free bytes below an address of a stack; the main stack grows up to its limit."""
        for mapping in mappings(self._pid):
            if mapping.start <= stack_pointer <= mapping.end:
                lowest = mapping.start
                if mapping.name == "[stack]":
                    limit = resource.prlimit(self._pid, resource.RLIMIT_STACK)[0]
                    lowest = 0 if limit == resource.RLIM_INFINITY else mapping.end - limit
                return stack_pointer - lowest
        return 0

    def _run_to_gate(self, gate: int, called: Frame) -> None:
        """Let the thread run until the called function has returned."""
        deadline = time.monotonic() + _RUN_SECONDS
        while True:
            self._ptrace(_PTRACE_SYSCALL)
            try:
                self._await(deadline - time.monotonic(), _PTRACE_SYSCALL)
            except NotStopped:
                # The machine may be stalled. The thread is detached, and restores itself later.
                raise NotStopped("does not return from a function of its interpreter; try again") from None
            registers = self._get()
            if (
                registers["rip"] == gate + len(_SYSCALL_INSTRUCTION)
                and registers["rbx"] == called.address
                and ctypes.c_int64(registers["rax"]).value == -errno.ENOSYS
            ):
                return

    def _seize(self) -> None:
        """Become its tracer; wait a while if another tracer has it."""
        deadline, tries = time.monotonic() + _OTHERS_SECONDS, 0
        while True:
            try:
                return self._ptrace(_PTRACE_SEIZE, 0, _PTRACE_O_TRACESYSGOOD)
            except PermissionError:
                tries = 0 if tracer_of(self._pid) else tries + 1
                if tries > _TRIES or time.monotonic() >= deadline:
                    raise
            time.sleep(_POLL_SECONDS)

    def _stop(self) -> None:
        """Stop the thread in its system call, or at its next one if that comes soon, or anywhere."""
        self._ptrace(_PTRACE_INTERRUPT)
        self._await(_STOP_SECONDS, _PTRACE_CONT)
        if self._is_group_stop:
            raise NotStopped("is stopped (state T): continue it first, with kill -CONT")
        if self._is_in_call(self._get()):
            return
        self._ptrace(_PTRACE_SYSCALL)
        try:
            self._await(_SYSCALL_SECONDS, _PTRACE_SYSCALL)
        except NotStopped:
            self._ptrace(_PTRACE_INTERRUPT)
            self._await(_STOP_SECONDS, _PTRACE_CONT)

    def _is_in_call(self, registers: Mapping[str, int]) -> bool:
        """Whether the thread is in a system call; its number is also set when a signal handler begins."""
        size = len(_SYSCALL_INSTRUCTION)
        return (
            registers["orig_rax"] < 2**63
            and self.memory.read(registers["rip"] - size, size) == _SYSCALL_INSTRUCTION
        )

    def _await(self, seconds: float, request: int) -> None:
        """Wait until the thread stops; pass its own signals on to it."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG | _WALL)
            except ChildProcessError:
                raise NotStopped("has ended") from None
            if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                raise NotStopped("has ended")
            if pid:
                event, number = status >> 16, os.WSTOPSIG(status)
                self._is_group_stop = event == _PTRACE_EVENT_STOP and number != signal.SIGTRAP
                if event or number == signal.SIGTRAP | 0x80:
                    return
                self._ptrace(request, 0, number)
            elif time.monotonic() >= deadline:
                raise NotStopped(f"does not come out of the kernel for {seconds:.0f} s")
            else:
                time.sleep(_POLL_SECONDS)

    def _get(self) -> dict[str, int]:
        buffer = ctypes.create_string_buffer(_REGISTERS.size)
        self._registers(_PTRACE_GETREGSET, buffer)
        return dict(zip(_REGISTER_NAMES, _REGISTERS.unpack(buffer.raw), strict=True))

    def _set(self, registers: Mapping[str, int]) -> None:
        content = _REGISTERS.pack(*(registers[name] for name in _REGISTER_NAMES))
        self._registers(_PTRACE_SETREGSET, ctypes.create_string_buffer(content, len(content)))

    def _registers(self, request: int, buffer: ctypes.Array[ctypes.c_char]) -> None:
        vector = _Vector(ctypes.addressof(buffer), len(buffer))
        self._ptrace(request, _NT_PRSTATUS, ctypes.addressof(vector))

    def _ptrace(self, request: int, address: int = 0, data: int = 0) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        library.ptrace.restype = ctypes.c_long
        if library.ptrace(request, self._pid, address, data) < 0:
            number = ctypes.get_errno()
            if number == errno.ESRCH:
                raise NotStopped("has ended")
            raise OSError(number, os.strerror(number))


@cache
def _has_xsave() -> bool:
    return re.search(r"^flags\s*:.*\bxsave\b", Path("/proc/cpuinfo").read_text(), re.M) is not None
