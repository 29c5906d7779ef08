"""Visitors that are killed after some of their system calls: `-m tests.harmless.entering.killed PID STRIDE`.

A visitor is a child of this program, which counts its system calls by `ptrace` from the first that traces the
visited process. Prints how many were killed.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
from contextlib import suppress

from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.http import server  # noqa: F401  (what a visit imports is imported once)

_PTRACE_TRACEME, _PTRACE_PEEKUSER, _PTRACE_SYSCALL, _PTRACE_SETOPTIONS = 0, 3, 24, 0x4200
# TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, EXITKILL
_OPTIONS = 1 | 2 | 4 | 8 | 0x100000
_ORIG_RAX = 15 * 8
_SYS_PTRACE = 101
_ALL_THREADS = 0x40000000
# Beyond so many steps it is only waited for the answer; then every tenth.
_EACH, _LAST = 150, 400
_library = ctypes.CDLL(None, use_errno=True)
_library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_library.ptrace.restype = ctypes.c_long


def visit(pid: int) -> None:
    """A visit that explains for a moment."""
    with suppress(CannotEnter), EnteredProcess(pid) as entered:
        entered.ask("explain", name="killed", wait_seconds=5)


def killed_after(steps: int, pid: int) -> bool:
    """Visit a process, and kill the visitor after so many system calls; False if it made fewer."""
    visitor = os.fork()
    if not visitor:
        _library.ptrace(_PTRACE_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            visit(pid)
        finally:
            os._exit(0)
    os.waitpid(visitor, _ALL_THREADS)
    _library.ptrace(_PTRACE_SETOPTIONS, visitor, None, _OPTIONS)
    _library.ptrace(_PTRACE_SYSCALL, visitor, None, None)
    made, counts, inside = 0, False, set[int]()
    while True:
        thread, status = os.waitpid(-1, _ALL_THREADS)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            inside.discard(thread)
            if thread == visitor:
                return False
            continue
        handed_on = 0
        if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
            counts = counts or _library.ptrace(_PTRACE_PEEKUSER, thread, _ORIG_RAX, None) == _SYS_PTRACE
            made += counts and thread in inside
            inside ^= {thread}
        elif not status >> 16 and os.WSTOPSIG(status) != signal.SIGSTOP:
            handed_on = os.WSTOPSIG(status)
        if made >= steps:
            os.kill(visitor, signal.SIGKILL)
            while os.waitpid(-1, _ALL_THREADS)[0] != visitor:
                pass
            return True
        _library.ptrace(_PTRACE_SYSCALL, thread, None, handed_on)


def main() -> int:
    """Kill a visitor after more and more system calls, while the process lives."""
    pid, stride = int(sys.argv[1]), int(sys.argv[2])
    killed, first = 0, random.randrange(1, stride + 1)
    for steps in [*range(first, _EACH, stride), *range(_EACH, _LAST, 10 * stride)]:
        if not killed_after(steps, pid) or not os.path.exists(f"/proc/{pid}"):
            break
        killed += 1
    print(killed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
