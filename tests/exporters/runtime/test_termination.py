"""What SIGTERM does to a trainer: the same as without Heapwatch, and the end is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from heapwatch.runtime.termination import Termination

pytestmark = pytest.mark.slow

PRELUDE = """
import asyncio, ctypes, faulthandler, multiprocessing, os, signal, subprocess, sys, threading, time
import heapwatch
from heapwatch.lifecycle import termination

def own(number, frame):
    print("own handler", flush=True)

def starts(seconds=60.0):  # on a busy machine two seconds may be too few
    termination._seconds = seconds
    return heapwatch.start("trainer", port=0, record="run.jsonl")
"""
READY = 'print("ready", flush=True)'
WAIT = "for _ in range(600): time.sleep(0.1)"


class Trainer:
    """A running trainer; `end` sends SIGTERM and returns its status and what it printed on stdout."""

    def __init__(self, folder: Path, code: str) -> None:
        script = folder / "trainer.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        environment = {**os.environ, "HEAPWATCH_TARGETS_DIR": str(folder / "targets")}
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        if (said := self.process.stdout.readline()) != "ready\n":
            raise AssertionError(said + self.process.communicate(timeout=60)[1])

    def end(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGTERM)
        said, reported = self.process.communicate(timeout=60)
        return self.process.returncode, said, reported


def test_the_end_is_reported_and_the_record_closed_before_the_signal_ends_it(tmp_path: Path) -> None:
    status, said, reported = Trainer(
        tmp_path, f"starts()\n{READY}\ntry:\n    {WAIT}\nfinally:\n    print('unwound')"
    ).end()
    assert status == -signal.SIGTERM
    assert said == ""  # nothing is unwound, as without Heapwatch
    assert "trainer has ended: " in reported
    assert "Traceback" not in reported
    assert '"explanation"' in (tmp_path / "run.jsonl").read_text().splitlines()[-1]
    assert list((tmp_path / "targets").glob("*.json")) == []


@pytest.mark.parametrize(
    "blocked",
    [
        # C code that does not return, without the interpreter's lock.
        "lock = ctypes.CDLL(None).pthread_mutex_lock; mutex = bytes(99); lock(mutex); lock(mutex)",
        "lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "threading.Thread(target=time.sleep, args=(60,)).start()",  # the interpreter waits for it at its end
        "sys.setswitchinterval(1e-5)\nwhile True: threading.Thread(target=int).start()",
        "while True: print('x' * 100, file=sys.stderr, end='')",
    ],
)
def test_wherever_the_main_thread_is(tmp_path: Path, blocked: str) -> None:
    status, _, reported = Trainer(tmp_path, f"starts()\n{READY}\n{blocked}").end()
    assert status == -signal.SIGTERM
    if "print" not in blocked:  # that one may hold the lock of stderr
        assert "trainer has ended: " in reported


def test_while_the_interpreter_waits_for_threads_at_its_end(tmp_path: Path) -> None:
    """Python 3.12.0 to 3.12.2 start no further thread then."""
    code = f"""
    starts()
    def work():
        time.sleep(0.5)  # the main thread waits for this one by now
        {READY}
        time.sleep(60)
    threading.Thread(target=work).start()
    """
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == -signal.SIGTERM
    assert "trainer has ended: " in reported


def test_a_stop_that_hangs_is_left_after_two_seconds(tmp_path: Path) -> None:
    code = f"""
    watch = starts(seconds=2.0)
    termination.before_end.insert(0, lambda: time.sleep(60))
    {READY}
    {WAIT}
    """
    trainer = Trainer(tmp_path, code)
    began = time.monotonic()
    assert trainer.end()[0] == -signal.SIGTERM
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "order",
    [
        "signal.signal(signal.SIGTERM, own); starts()",
        "starts(); signal.signal(signal.SIGTERM, own)",
        # As libraries do that call what was there before them.
        "starts(); there = signal.getsignal(signal.SIGTERM); "
        "signal.signal(signal.SIGTERM, lambda *a: (own(*a), callable(there) and there(*a)))",
    ],
)
def test_the_programs_own_handler_decides(tmp_path: Path, order: str) -> None:
    code = f"{order}\n{READY}\ntime.sleep(1)\nprint('went on', flush=True)"
    status, said, reported = Trainer(tmp_path, code).end()
    assert status == 0
    assert said == "own handler\nwent on\n"
    assert reported.count("trainer has ended: ") == 1


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    code = f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\nstarts()\n{READY}\ntime.sleep(1)\nprint('end')"
    assert Trainer(tmp_path, code).end()[:2] == (0, "end\n")


def test_a_handler_that_ends_the_program_ends_it_as_usual(tmp_path: Path) -> None:
    code = f"signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nstarts()\n{READY}\n{WAIT}"
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == 7
    assert "trainer has ended: " in reported


def test_a_loop_of_asyncio_takes_the_signal(tmp_path: Path) -> None:
    code = f"""
    async def main():
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        {READY}
        await asyncio.wait_for(ended.wait(), 60)
        print("asyncio", flush=True)
    starts()
    asyncio.run(main())
    """
    assert Trainer(tmp_path, code).end()[:2] == (0, "asyncio\n")


def test_beside_a_loop_of_asyncio_that_leaves_it_alone(tmp_path: Path) -> None:
    code = f"""
    async def main():
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)
        {READY}
        await asyncio.sleep(60)
    starts()
    asyncio.run(main())
    """
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == -signal.SIGTERM
    assert "trainer has ended: " in reported


def test_the_traceback_of_faulthandler_comes_first(tmp_path: Path) -> None:
    code = f"starts()\nfaulthandler.register(signal.SIGTERM, chain=True)\n{READY}\n{WAIT}"
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == -signal.SIGTERM
    assert reported.index("most recent call first") < reported.index("trainer has ended: ")


@pytest.mark.parametrize(
    "child",
    [
        "child = os.fork()\nif not child: time.sleep(60)",
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid",
        # Forked by C code, which runs none of Python's functions for that.
        "child = ctypes.PyDLL(None).fork()\nif not child: ctypes.PyDLL(None).sleep(60); time.sleep(60)",
        "child = os.fork()\nif not child: starts(); time.sleep(60)",
    ],
)
def test_a_child_ends_alone(tmp_path: Path, child: str) -> None:
    code = f"""
starts()
{child}
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
time.sleep(0.5)
print("parent goes on")
"""
    assert printed(tmp_path, code) == f"{-signal.SIGTERM}\nparent goes on\n"


def test_a_child_that_was_just_forked_ends(tmp_path: Path) -> None:
    code = f"""
starts()
for _ in range(50):
    child = os.fork()
    if not child: time.sleep(20); os._exit(3)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
{READY}
{WAIT}
"""
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == -signal.SIGTERM
    assert "trainer has ended: " in reported, "the parent handles it again"


def test_a_fork_changes_nothing_where_c_code_has_taken_the_signal_back(tmp_path: Path) -> None:
    code = f"""
starts()
ctypes.pythonapi.PyOS_setsig(signal.SIGTERM, None)
child = os.fork()
if not child: os._exit(0)
os.waitpid(child, 0)
{READY}
{WAIT}
"""
    status, _, reported = Trainer(tmp_path, code).end()
    assert status == -signal.SIGTERM
    assert "trainer has ended: " not in reported


def printed(folder: Path, code: str) -> str:
    """What a script prints that ends by itself."""
    script = folder / "trainer.py"
    script.write_text(PRELUDE + code)
    environment = {**os.environ, "HEAPWATCH_TARGETS_DIR": str(folder / "targets")}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_the_main_thread_handles_signals() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(Termination([]).install()))
    thread.start()
    thread.join(60)
    assert found == [False]
