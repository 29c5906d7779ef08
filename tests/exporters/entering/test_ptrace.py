"""A stopped thread goes on where it was: a system call is not ended, no register is changed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from heapwatch.entering.elf import exported
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.entering.machine_code import FUNCTIONS
from heapwatch.entering.ptrace import IS_SUPPORTED, Memory, NotStopped, Tracee
from tests.support.entered_programs import program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]

# Calls of C that are made once: no interpreter makes them again. Another thread ends those without a limit.
WAITING = {
    "nanosleep": "C.usleep(1000000)",
    "poll": "C.poll(None, 0, 1000)",
    "select": "C.select(0, None, None, None, byref((c_long * 2)(1, 0)))",
    "epoll_wait": "C.epoll_wait(epoll, byref(event), 1, -1) - 1",
    "read": "C.read(readable, byref(event), 1) - 1",
    "sigwaitinfo": "C.sigwaitinfo(byref(signals), None) - signal.SIGUSR1",
    "sem_wait": "C.sem_wait(byref(semaphore))",
    "semop": "C.semop(semaphores, byref(down), 1)",
    "recv": "C.recv(ours.fileno(), byref(event), 1, 0) - 1",
}
PROGRAM = """
    import os, select, signal, socket, struct, sys, threading, time
    from ctypes import CDLL, byref, c_long, c_short, c_ulong, create_string_buffer, get_errno
    C = CDLL(None, use_errno=True)
    readable, writable = os.pipe()
    epoll = C.epoll_create1(0)
    event, semaphore = create_string_buffer(12), create_string_buffer(32)
    event[0] = 1
    C.epoll_ctl(epoll, 1, readable, byref(event))
    C.sem_init(byref(semaphore), 0, 0)
    semaphores, down, up = C.semget(0, 1, 0o600), (c_short * 3)(0, -1, 0), (c_short * 3)(0, 1, 0)
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 100, 0))
    signals = (c_ulong * 16)(1 << signal.SIGUSR1 - 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    def wake():
        os.write(writable, b"x")
        C.sem_post(byref(semaphore))
        C.semop(semaphores, byref(up), 1)
        theirs.send(b"x")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
    threading.Timer(1.0, wake).start()
    print("ready", flush=True)
    began = time.monotonic()
    result = CALL
    C.semctl(semaphores, 0, 0)
    print(result, get_errno() if result else 0, began, time.monotonic(), flush=True)
"""


@contextmanager
def stopped(pid: int) -> Iterator[Tracee]:
    with Memory(pid) as memory:
        functions = exported(pid, (*FUNCTIONS, "Py_GetVersion"))
        with Tracee(pid, memory) as thread:
            thread.code(functions)
            version = thread.read_text(thread.call(functions["Py_GetVersion"]), 100)
            assert version == sys.version
            yield thread


@pytest.mark.parametrize("name", WAITING)
def test_a_call_that_waits_is_neither_ended_nor_made_anew(name: str, tmp_path: Path) -> None:
    with program(PROGRAM.replace("CALL", WAITING[name]), tmp_path) as process:
        for _ in range(4):
            time.sleep(0.15)
            with stopped(process.pid):
                last = time.monotonic()
        out, _ = process.communicate(timeout=30)
    result, error, began, ended = map(float, out.split())
    assert (result, error) == (0, 0)
    assert ended - began > 0.9, "woken early"
    assert ended - last < 0.9, "made anew"


def test_a_thread_that_is_slow_is_let_go_and_restores_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import ctypes, sys, time
        print(ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value, flush=True)
        began, right = time.monotonic(), True
        while time.monotonic() < began + 2:
            right = right and sum(range(100)) == 4950
        sys.exit(7 if right else 1)
    """
    monkeypatch.setattr("heapwatch.entering.ptrace._RUN_SECONDS", 0.2)
    found: list[str] = []
    with program(code, tmp_path, first_line=found.append) as process:

        def call() -> None:
            with stopped(process.pid) as thread:
                thread.call(int(found[0]), 300_000)

        for _ in range(2):
            with ThreadPoolExecutor(1) as tracer, pytest.raises(NotStopped, match="does not return from"):
                tracer.submit(call).result(30)
        assert process.wait(30) == 7


@pytest.mark.parametrize("seconds", [0.0, 0.0003])
def test_a_visitor_that_never_waits_long_enough_harms_nothing(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import select, sys, threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 1)[0]:
            pass
        sys.exit(7)
    """
    monkeypatch.setattr("heapwatch.entering.ptrace._RUN_SECONDS", seconds)
    with program(code, tmp_path) as process:
        for _ in range(8):
            with suppress(CannotEnter), EnteredProcess(process.pid) as entered:
                entered.ask("leave", wait_seconds=0.1)
        assert process.communicate("end\n", timeout=30) == ("", None)
        assert process.returncode == 7


def test_no_number_of_a_loop_in_c_changes(tmp_path: Path) -> None:
    code = """
        import numpy, select, sys
        values = numpy.arange(2_000_000, dtype=numpy.float64)
        right, results, wrong, rounds = values * 2, numpy.empty_like(values), 0, 0
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            for _ in range(200):  # longer than a system call is waited for
                numpy.multiply(values, 2.0, out=results)
                wrong += not (results == right).all()
                rounds += 1
        print(wrong, rounds > 0, flush=True)
    """
    with program(code, tmp_path, "-W", "error") as process:
        for number in range(14):
            with stopped(process.pid):
                pass
            time.sleep(0.01 * (number % 7))
        out, _ = process.communicate("end\n", timeout=60)
    assert out == "0 True\n"
