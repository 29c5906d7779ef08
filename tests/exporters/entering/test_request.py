"""Requests in real processes: nothing is taken back while the interpreter may come to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heapwatch.entering.elf import exported, mappings
from heapwatch.entering.machine_code import FUNCTIONS
from heapwatch.entering.ptrace import IS_SUPPORTED, Memory, NotStopped, Tracee
from heapwatch.entering.request import COUNT, LONGEST, Request
from tests.support.entered_programs import program
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]

BUSY = "print('ready', flush=True)\nwhile True: sum(range(100))"
# Its main thread is in C code, which reaches no byte code, until a line comes.
SHUT = """
    import ctypes, sys, time
    print("ready", flush=True)
    ctypes.CDLL(None).read(0, ctypes.create_string_buffer(1), 1)
    for _ in range(100):
        time.sleep(0.01)
    print("end", flush=True)
    sys.exit(7)
"""


@contextmanager
def requests(pid: int) -> Iterator[tuple[Memory, dict[str, int]]]:
    with Memory(pid) as memory:
        yield memory, exported(pid, (*FUNCTIONS, "Py_AddPendingCall"))


@contextmanager
def shut(tmp_path: Path, code: str = SHUT) -> Iterator[subprocess.Popen[str]]:
    """A program whose main thread is in `read` of C."""
    with program(code, tmp_path) as process:
        while not Path(f"/proc/{process.pid}/syscall").read_text().startswith("0 0x0 "):
            time.sleep(0.01)
        yield process


def write(path: Path) -> str:
    return f"open({str(path)!r}, 'a').write('x')\n"


def queue(pid: int, text: str) -> Request:
    with Memory(pid) as memory:
        request = Request(pid, memory, exported(pid, (*FUNCTIONS, "Py_AddPendingCall")), text)
        with Tracee(pid, memory) as thread:
            request.queue(thread)
    return request


def has(path: Path, expected: str) -> bool:
    return wait_for(lambda: path.read_text() == expected, f"{path.name} has {expected}")


def test_a_hundred_requests_use_the_same_memory(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with program(BUSY, tmp_path) as process, requests(process.pid) as (memory, functions):
        for number in range(100):
            with Tracee(process.pid, memory) as thread:
                Request(process.pid, memory, functions, write(made)).queue(thread)
            assert has(made, "x" * (number + 1))
            # A thread that begins before the last one has ended has a stack and a heap of its own.
            wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 1, "it has one thread")
            if number == 50:  # stacks and heaps of threads are kept by the library of C
                before = len(mappings(process.pid))
        assert len(mappings(process.pid)) <= before


def test_a_withdrawn_request_begins_nothing_and_the_call_stays_good(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with shut(tmp_path) as process, requests(process.pid) as (memory, functions):
        for made in (first, second, second):
            request = Request(process.pid, memory, functions, write(made))
            with Tracee(process.pid, memory) as thread:
                request.queue(thread)
            if made is first:
                request.withdraw()
        out, _ = process.communicate("x", timeout=30)
        assert (out, process.returncode) == ("end\n", 7)
    assert has(second, "xx")
    assert not first.exists()


def test_a_request_that_waits_is_not_taken_from_its_sender_while_that_lives(tmp_path: Path) -> None:
    made = [tmp_path / str(number) for number in range(COUNT)]
    with shut(tmp_path) as process, requests(process.pid) as (memory, functions):
        for path in made:
            queue(process.pid, write(path))
        one_more = Request(process.pid, memory, functions, "")
        with (
            pytest.raises(NotStopped, match="is being entered by other commands"),
            Tracee(process.pid, memory) as thread,
        ):
            one_more.queue(thread)
        out, _ = process.communicate("x", timeout=30)
        assert (out, process.returncode) == ("end\n", 7)
    assert all(has(path, "x") for path in made)


def test_the_memory_of_a_killed_sender_is_used_again(tmp_path: Path) -> None:
    senders = """
import os, signal, sys
from tests.exporters.entering.test_request import COUNT, queue
for _ in range(COUNT + 1):
    sender = os.fork()
    if not sender:
        queue(int(sys.argv[1]), "")
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(sender, 0)[1] == signal.SIGKILL
"""
    made = tmp_path / "made"
    with shut(tmp_path) as process:
        subprocess.run([sys.executable, "-c", senders, str(process.pid)], check=True)
        queue(process.pid, write(made))
        out, _ = process.communicate("x", timeout=30)
        assert (out, process.returncode) == ("end\n", 7)
    assert has(made, "x")


def test_a_forked_child_begins_nothing_and_can_be_asked_itself(tmp_path: Path) -> None:
    made, own = tmp_path / "made", tmp_path / "own"
    forking = """
        import ctypes, functools, operator, os, sys
        print("ready", flush=True)
        C = ctypes.CDLL(None)
        calls = (functools.partial(C.read, 0, ctypes.create_string_buffer(1), 1), C.fork)
        # No byte code lies between the two, so the interpreter has not come to what is pending.
        _, child = map(operator.methodcaller("__call__"), calls)
        if not child:
            sum(range(100))
            while not os.path.exists("{own}"):
                sum(range(100))
            os._exit(0)
        print(child, flush=True)
        sys.exit(os.waitpid(child, 0)[1])
    """.replace("{own}", str(own))
    with shut(tmp_path, forking) as process:
        queue(process.pid, write(made))
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("x")
        process.stdin.flush()
        child = int(process.stdout.readline())
        assert has(made, "x")
        queue(child, write(own))
        assert process.wait(30) == 0
    assert has(made, "x")


def test_another_program_in_the_same_process_is_left_alone(tmp_path: Path) -> None:
    replaced = f"""
        import ctypes, os, sys
        print("ready", flush=True)
        ctypes.CDLL(None).read(0, ctypes.create_string_buffer(1), 1)
        os.execv(sys.executable, [sys.executable, "-c", {BUSY!r}])
    """
    with shut(tmp_path, replaced) as process, requests(process.pid) as (memory, functions):
        request = Request(process.pid, memory, functions, "")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("x")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(NotStopped, match="runs another program now"), Tracee(process.pid, memory):
            pass
        request.withdraw()
        time.sleep(0.1)
        assert process.poll() is None


def test_a_text_that_has_no_room_is_refused(tmp_path: Path) -> None:
    with Memory(os.getpid()) as memory, pytest.raises(ValueError, match=f"at most {LONGEST} characters"):
        Request(os.getpid(), memory, {}, "x" * (LONGEST + 1))
