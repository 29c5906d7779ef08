"""How real processes have ended, before and after their parent has waited for them."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from heapwatch.measure.process.ended import (
    Ending,
    close_pidfd,
    ended_among,
    ending_of,
    is_pidfd_of,
    open_pidfd,
)
from tests.support.descriptors import of_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")


KERNEL = tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


after_wait = pytest.mark.skipif(KERNEL < (6, 15), reason="Linux tells it from 6.15 on")


CRASH_IN_THREAD = """
import ctypes, threading, time
threading.Thread(target=ctypes.string_at, args=(1,)).start()
time.sleep(60)
"""


ENDS = [
    ("import os; os.kill(os.getpid(), 11)", Ending(signal=signal.SIGSEGV)),
    (CRASH_IN_THREAD, Ending(signal=signal.SIGSEGV)),
    ("import os; os.kill(os.getpid(), 9)", Ending(signal=signal.SIGKILL)),
    ("raise SystemExit(3)", Ending(code=3)),
    ("", Ending(code=0)),
]


def started(code: str) -> tuple[subprocess.Popen[bytes], int]:
    """A process, and the descriptor of it."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", f"input()\n{code}"], stdin=subprocess.PIPE)
    descriptor = open_pidfd(process.pid)
    assert descriptor is not None
    assert not os.get_inheritable(descriptor)
    assert ended_among([descriptor]) == []
    return process, descriptor


def ended(process: subprocess.Popen[bytes], descriptor: int) -> int:
    """Its process id, once it is a zombie."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.close()
    assert ended_among([descriptor], 30.0) == [descriptor]
    return process.pid


def as_before_linux_6_15(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "ioctl", Mock(side_effect=OSError(errno.ENOTTY, "")))


@pytest.mark.parametrize(("code", "how"), ENDS)
def test_a_zombie_tells_how_it_has_ended_and_its_parent_still_gets_its_status(
    code: str, how: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_before_linux_6_15(monkeypatch)
    process, descriptor = started(code)
    pid = ended(process, descriptor)
    assert (ending_of(pid, descriptor), ending_of(pid)) == (how, how)
    assert process.wait(30) == (how.code if how.signal is None else -how.signal)
    assert ending_of(pid, descriptor) == ending_of(pid) == Ending()
    close_pidfd(descriptor, pid)


@after_wait
@pytest.mark.parametrize(("code", "how"), ENDS)
def test_it_is_known_also_when_its_parent_has_waited_for_it(code: str, how: Ending) -> None:
    process, descriptor = started(code)
    pid = ended(process, descriptor)
    process.wait(30)
    assert ending_of(pid, descriptor) == how
    before = of_processes()
    close_pidfd(descriptor, pid)
    assert not is_pidfd_of(descriptor, pid)
    assert of_processes() == before - 1


def test_a_process_that_runs_or_is_gone_has_no_ending_and_no_descriptor() -> None:
    assert ending_of(os.getpid()) == Ending()
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait(30)
    assert open_pidfd(process.pid) is None


def replaced_by_a_file(descriptor: int) -> None:
    with Path(os.devnull).open() as file:
        os.dup2(file.fileno(), descriptor)


@pytest.mark.parametrize("replaced", [os.close, replaced_by_a_file])
def test_a_number_that_a_program_uses_for_something_else_is_left(replaced: Callable[[int], None]) -> None:
    process, descriptor = started("")
    replaced(descriptor)
    assert not is_pidfd_of(descriptor, process.pid)
    close_pidfd(descriptor, process.pid)
    if replaced is replaced_by_a_file:
        os.close(descriptor)  # it is still open
    process.kill()
    process.wait(30)


@pytest.mark.parametrize(
    ("how", "word", "said"),
    [
        (Ending(signal=11), "SIGSEGV", "was killed by SIGSEGV during it (signal 11)"),
        (Ending(code=3), "exit code 3", "ended with exit code 3 during it"),
        (Ending(code=0), "exit code 0", "ended by itself during it (exit code 0)"),
        (Ending(), "unknown", "has ended during it; how is not known"),
    ],
)
def test_what_is_said_of_it(how: Ending, word: str, said: str) -> None:
    assert (how.how, how.said("during it")) == (word, said)
    assert how.said() == said.replace(" during it", "")
    assert how.is_failure == (word != "exit code 0")
