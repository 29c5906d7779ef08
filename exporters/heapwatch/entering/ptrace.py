"""One call of a C function in the main thread of another process, by `ptrace` (Linux on x86-64).

The thread is stopped for about a millisecond, at a system call where it makes one: then it is in no function
that holds a lock of the interpreter. All of its registers, those of floating-point numbers too, and its
signals are afterwards as they were; a call that it waited in goes on. No byte of its code is changed.
Addresses of functions are read from the ELF files that the process has mapped.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import re
import signal
import struct
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Self

_CONT, _DETACH, _SYSCALL, _SEIZE, _INTERRUPT = 7, 17, 24, 0x4206, 0x4207
_GETREGSET, _SETREGSET, _GETSIGMASK, _SETSIGMASK = 0x4204, 0x4205, 0x420A, 0x420B
_MARK_SYSCALLS = 1
_GENERAL, _EXTENDED = 1, 0x202  # sets of registers
_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_REGISTERS = struct.Struct(f"<{len(_NAMES)}Q")
_EXTENDED_BYTES = 65536
_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
# read, poll, select, pause, nanosleep, accept, recvfrom, recvmsg, wait4, rt_sigtimedwait, rt_sigsuspend,
# futex, clock_nanosleep, epoll_wait, waitid, pselect6, ppoll, epoll_pwait, accept4, epoll_pwait2
_WAITING = {0, 7, 23, 34, 35, 43, 45, 47, 61, 128, 130, 202, 230, 232, 247, 270, 271, 281, 288, 441}
_READ, _WRITE, _RUN, _PRIVATE, _ANONYMOUS = 1, 2, 4, 2, 32
_MMAP, _MUNMAP, _GETPID, _RESTART = 9, 11, 39, 219
_NONE = 2**64 - 1
# What an interrupted system call returns where it is to be made again, and where it goes on by another one.
_AGAIN, _GO_ON = {2**64 - 512, 2**64 - 513, 2**64 - 514}, 2**64 - 516
_ALL_THREADS = 0x40000000
_EVENT_STOP = 128
_CALL = b"\x0f\x05"
_RED_ZONE = 512
# These come from what a thread does itself, and end the process where they are blocked.
_OWN = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
_STOP_SECONDS = 5.0
_OTHERS_SECONDS, _TRIES = 3.0, 3
_SYSCALL_SECONDS = 0.1
_RUN_SECONDS = 2.0
_POLL_SECONDS = 0.0001

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_LOADED, _DYNAMIC_SYMBOLS = 1, 11
_FIXED = 2  # the kind of a file whose addresses are absolute
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

IS_SUPPORTED = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")


class NotStopped(Exception):
    """The thread could not be stopped, or ended; the message says why, after the words `process N`."""


def tracer_of(pid: int) -> int:
    """The process that traces this one; 0 where none does."""
    found = re.search(r"^TracerPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(errors="replace"), re.M)
    return int(found[1]) if found else 0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class Tracee:
    """The main thread of a process, stopped inside a `with` block, in which no signal ends this program.

    Args:
        pid: of a process that this user may trace.

    Raises:
        NotStopped: see there.
        PermissionError: this user may not trace it, or another program does.

    """

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __enter__(self) -> Self:
        # Between the first changed register and the last restored one nothing may end this program.
        self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._seize()
            self._stop()
            try:
                self._keep()
                self._to_gate()
            except BaseException:
                self._restore()
                raise
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._restore()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)

    def call(self, address: int, *arguments: int) -> int:
        """The result, 64 bits without a sign, of a function that waits for nothing."""
        stack = ((self._kept["rsp"] - _RED_ZONE) & ~15) - 8
        self.write(stack, self._gate.to_bytes(8, "little"))
        words = dict(zip(("rdi", "rsi", "rdx", "rcx", "r8", "r9"), arguments, strict=False))
        self._set({**self._kept, **words, "rip": address, "rsp": stack, "rax": 0, "orig_rax": _NONE})
        until = time.monotonic() + _RUN_SECONDS
        while True:
            self._resume(until)
            now = self._get()
            if now["rip"] == self._gate + len(_CALL) and now["rsp"] == stack + 8:
                return now["orig_rax"]

    def system_call(self, number: int, *arguments: int) -> int:
        """The result of a system call, which is negative where it failed."""
        words = dict(zip(_ARGUMENTS, (*arguments, *[0] * 6), strict=False))
        self._set({**self._get(), **words, "orig_rax": number})
        until = time.monotonic() + _RUN_SECONDS
        self._resume(until)
        result = self._get()["rax"]
        self._set({**self._get(), "rip": self._gate, "rax": _GETPID, "orig_rax": _NONE})
        self._resume(until)
        return int(ctypes.c_int64(result).value)

    def waits(self) -> bool:
        """Whether the thread waits for something outside of it; then it holds no lock of an allocator."""
        return self._in_call and self._kept["orig_rax"] in _WAITING

    def take_memory(self, size: int, *, runnable: bool = False) -> int:
        """The address of new memory of the process, in bytes; raises NotStopped where it gets none."""
        protection = _READ | (_RUN if runnable else _WRITE)
        address = self.system_call(_MMAP, 0, size, protection, _PRIVATE | _ANONYMOUS, _NONE, 0)
        if address < 0:
            raise NotStopped(f"has no memory left: {os.strerror(-address)}")
        return address

    def give_memory(self, address: int, size: int) -> None:
        """Free what `take_memory` took."""
        self.system_call(_MUNMAP, address, size)

    def write(self, address: int, content: bytes) -> None:
        """Change memory of the process."""
        with open(f"/proc/{self._pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(content)

    def read_text(self, address: int, longest: int) -> str:
        """A string of C at an address."""
        return self._read(address, longest).split(b"\0")[0].decode("ascii", "replace")

    def _read(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self._pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)

    def _seize(self) -> None:
        """Become its tracer, when another command like this one is through with it."""
        until, tries = time.monotonic() + _OTHERS_SECONDS, 0
        while True:
            try:
                return self._ptrace(_SEIZE, 0, _MARK_SYSCALLS)
            except PermissionError:
                tries = 0 if tracer_of(self._pid) else tries + 1
                if tries > _TRIES or time.monotonic() >= until:
                    raise
            time.sleep(_POLL_SECONDS)

    def _stop(self) -> None:
        """Stop the thread: where it is inside a system call, else at its next one if that comes soon."""
        self._ptrace(_INTERRUPT)
        self._await(_STOP_SECONDS, _CONT)
        if self._is_group_stop:
            self._ptrace(_DETACH)
            raise NotStopped("is stopped (state T): continue it first, with kill -CONT")
        if self._is_in_call(self._get()):
            return
        self._ptrace(_SYSCALL)
        try:
            self._await(_SYSCALL_SECONDS, _SYSCALL)
        except NotStopped:
            self._ptrace(_INTERRUPT)
            self._await(_STOP_SECONDS, _CONT)

    def _keep(self) -> None:
        self._kept = self._get()
        self._extended = ctypes.create_string_buffer(_EXTENDED_BYTES)
        self._extended_bytes = self._registers(_GETREGSET, _EXTENDED, self._extended, _EXTENDED_BYTES)
        self._mask = ctypes.c_uint64()
        self._ptrace(_GETSIGMASK, 8, ctypes.addressof(self._mask))
        blocked = ctypes.c_uint64(_NONE & ~sum(1 << (number - 1) for number in _OWN))
        self._ptrace(_SETSIGMASK, 8, ctypes.addressof(blocked))
        self._in_call = self._is_in_call(self._kept)
        self._gate = self._kept["rip"] - len(_CALL) if self._in_call else self._gate_of_kernel()

    def _to_gate(self) -> None:
        """Bring the thread to the entry of a system call, where the kernel asks which one to make."""
        until = time.monotonic() + _RUN_SECONDS
        self._set({**self._kept, "rip": self._gate, "rax": _GETPID, "orig_rax": _NONE})
        while True:
            self._resume(until)
            now = self._get()
            if (
                now["rip"] == self._gate + len(_CALL)
                and now["orig_rax"] == _GETPID
                and now["rax"] == 2**64 - 38
            ):
                return

    def _restore(self) -> None:
        """Put everything back, and let the thread go on."""
        back = dict(self._kept)
        if self._in_call:
            result = back["rax"]
            at_entry = result == 2**64 - errno.ENOSYS
            if at_entry or result in _AGAIN or result == _GO_ON:
                back["rax"] = _RESTART if result == _GO_ON else back["orig_rax"]
                back["rip"] = self._gate
        back["orig_rax"] = _NONE
        self._set(back)
        self._registers(_SETREGSET, _EXTENDED, self._extended, self._extended_bytes)
        self._ptrace(_SETSIGMASK, 8, ctypes.addressof(self._mask))
        self._ptrace(_DETACH)

    def _is_in_call(self, registers: dict[str, int]) -> bool:
        """Whether the thread made a system call; the kernel notes its number also when a handler begins."""
        before = registers["rip"] - len(_CALL)
        return registers["orig_rax"] < 2**63 and self._read(before, len(_CALL)) == _CALL

    def _gate_of_kernel(self) -> int:
        """The address of an instruction that makes a system call, in the page that the kernel maps."""
        found = first_mapping(self._pid, "[vdso]")
        at = self._read(found[0], found[1] - found[0]).find(_CALL) if found else -1
        if found is None or at < 0:
            raise NotStopped("makes no system call now; try again")
        return found[0] + at

    def _resume(self, until: float) -> None:
        self._ptrace(_SYSCALL)
        try:
            self._await(until - time.monotonic(), _SYSCALL)
        except NotStopped:
            self._ptrace(_INTERRUPT)
            self._await(_STOP_SECONDS, _CONT)
            raise

    def _await(self, seconds: float, request: int) -> None:
        """Wait until the thread stops; signals of its own are handed on."""
        until = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | _ALL_THREADS)
            if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                raise NotStopped("has ended")
            if pid:
                event, number = status >> 16, os.WSTOPSIG(status)
                self._is_group_stop = event == _EVENT_STOP and number != signal.SIGTRAP
                if event or number == signal.SIGTRAP | 0x80:
                    return
                self._ptrace(request, 0, number)
            elif time.monotonic() >= until:
                raise NotStopped(f"does not come out of the kernel for {seconds:.0f} s")
            else:
                time.sleep(_POLL_SECONDS)

    def _get(self) -> dict[str, int]:
        buffer = ctypes.create_string_buffer(_REGISTERS.size)
        self._registers(_GETREGSET, _GENERAL, buffer, _REGISTERS.size)
        return dict(zip(_NAMES, _REGISTERS.unpack(buffer.raw), strict=True))

    def _set(self, registers: dict[str, int]) -> None:
        content = _REGISTERS.pack(*(registers[name] for name in _NAMES))
        self._registers(
            _SETREGSET, _GENERAL, ctypes.create_string_buffer(content, len(content)), len(content)
        )

    def _registers(self, request: int, which: int, buffer: ctypes.Array[ctypes.c_char], size: int) -> int:
        vector = _Vector(ctypes.addressof(buffer), size)
        self._ptrace(request, which, ctypes.addressof(vector))
        return int(vector.bytes)

    def _ptrace(self, request: int, address: int = 0, data: int = 0) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        library.ptrace.restype = ctypes.c_long
        if library.ptrace(request, self._pid, address, data) < 0:
            number = ctypes.get_errno()
            if number == errno.ESRCH:
                raise NotStopped("has ended")
            raise OSError(number, os.strerror(number))


class _Mapping(NamedTuple):
    start: int
    end: int
    is_first_page: bool
    name: str


def exported(pid: int, names: Collection[str]) -> dict[str, int]:
    """Addresses by name in the program, or in a `libpython` that it has loaded; empty unless it has them all.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    for mapping in _libraries(pid):
        try:
            found = _symbols(Path(f"/proc/{pid}/root{mapping.name}"), set(names), mapping.start)
        except (OSError, ValueError, struct.error):  # replaced since it was loaded, or no library
            continue
        if len(found) == len(names):
            return found
    return {}


def first_mapping(pid: int, name: str) -> tuple[int, int] | None:
    """Start and end of the first mapping of this name, such as `[vdso]`; None without one."""
    return next(((one.start, one.end) for one in _mappings(pid) if one.name == name), None)


def _mappings(pid: int) -> Iterator[_Mapping]:
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6:
            start, end = (int(text, 16) for text in fields[0].split("-"))
            yield _Mapping(start, end, fields[2] == "00000000", fields[5])


def _libraries(pid: int) -> Iterator[_Mapping]:
    """The lowest mapping of each file that may hold the interpreter."""
    program = os.readlink(f"/proc/{pid}/exe")
    lowest: dict[str, _Mapping] = {}
    for one in _mappings(pid):
        if one.name.startswith("/") and one.is_first_page:
            lowest.setdefault(one.name, one)
    for path, one in lowest.items():
        if path == program or os.path.basename(path).startswith("libpython"):
            yield one


def _symbols(path: Path, names: set[str], start: int) -> dict[str, int]:
    """Addresses of symbols of a file that is mapped at `start`."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(_MAGIC)] != _MAGIC:
            raise ValueError("no ELF file")
        kind = struct.unpack_from("<H", content, 16)[0]
        programs, sections = struct.unpack_from("<QQ", content, 32)
        count_of_programs, _, count_of_sections = struct.unpack_from("<HHH", content, 56)
        loaded = (
            _PROGRAM_HEADER.unpack_from(content, programs + at * _PROGRAM_HEADER.size)
            for at in range(count_of_programs)
        )
        first = min(header[3] - header[2] for header in loaded if header[0] == _LOADED)
        headers = [
            _SECTION_HEADER.unpack_from(content, sections + at * _SECTION_HEADER.size)
            for at in range(count_of_sections)
        ]
        base = 0 if kind == _FIXED else start - first
        symbols: dict[str, int] = {}
        for header in headers:
            if header[1] != _DYNAMIC_SYMBOLS:
                continue
            offset, size, text = header[4], header[5], headers[header[6]][4]
            for name, _, _, section, value, _ in _SYMBOL.iter_unpack(content[offset : offset + size]):
                if section:
                    begin = text + name
                    word = content[begin : content.find(b"\0", begin, begin + 64)].decode("latin-1")
                    if word in names:
                        symbols[word] = base + value
        return symbols
