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
import asyncio, ctypes, os, signal, sys, threading, time
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
    """A running trainer; `end` sends SIGTERM and returns its status, what it printed and what it logged."""

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


ENDED_BY_IT = {
    "in C code that does not return and holds no lock of the interpreter": f"""
        {READY}
        lock = ctypes.CDLL(None).pthread_mutex_lock; mutex = bytes(99); lock(mutex); lock(mutex)
    """,
    "waits for a lock": f"{READY}\nlock = threading.Lock(); lock.acquire(); lock.acquire()",
    "starts threads": f"""
        {READY}
        sys.setswitchinterval(1e-5)
        while True: threading.Thread(target=int).start()
    """,
    "after forks whose children were ended at once": f"""
        for _ in range(50):
            child = os.fork()
            if not child: time.sleep(20); os._exit(3)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        {READY}
        {WAIT}
    """,
}


@pytest.mark.parametrize("code", ENDED_BY_IT.values(), ids=ENDED_BY_IT)
def test_wherever_the_main_thread_is_the_signal_ends_it_and_the_end_is_told(
    tmp_path: Path, code: str
) -> None:
    status, _, reported = Trainer(tmp_path, f"starts()\n{textwrap.dedent(code)}").end()
    assert status == -signal.SIGTERM
    assert "trainer has ended: " in reported


def test_the_signal_ends_it_also_where_it_may_hold_the_lock_of_stderr(tmp_path: Path) -> None:
    code = f"{READY}\nwhile True: print('x' * 100, file=sys.stderr, end='')"
    assert Trainer(tmp_path, f"starts()\n{code}").end()[0] == -signal.SIGTERM


def test_a_stop_that_hangs_is_left_after_two_seconds(tmp_path: Path) -> None:
    hangs = "termination.before_end.insert(0, lambda: time.sleep(60))"
    trainer = Trainer(tmp_path, f"starts(seconds=2.0)\n{hangs}\n{READY}\n{WAIT}")
    began = time.monotonic()
    assert trainer.end()[0] == -signal.SIGTERM
    assert time.monotonic() - began < 30


GOES_ON = f"{READY}\ntime.sleep(1)\nprint('went on', flush=True)"
DECIDED_BY_THE_PROGRAM = {
    "its handler before": (
        f"signal.signal(signal.SIGTERM, own); starts()\n{GOES_ON}",
        0,
        "own handler\nwent on\n",
    ),
    # As libraries do.
    "a handler that calls what was there before it": (
        "starts(); there = signal.getsignal(signal.SIGTERM); "
        f"signal.signal(signal.SIGTERM, lambda *a: (own(*a), callable(there) and there(*a)))\n{GOES_ON}",
        0,
        "own handler\nwent on\n",
    ),
    "a loop of asyncio": (
        f"""
        async def main():
            ended = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
            {READY}
            await asyncio.wait_for(ended.wait(), 60)
            print("asyncio", flush=True)
        starts()
        asyncio.run(main())
        """,
        0,
        "asyncio\n",
    ),
}


@pytest.mark.parametrize(
    ("code", "status", "said"), DECIDED_BY_THE_PROGRAM.values(), ids=DECIDED_BY_THE_PROGRAM
)
def test_what_the_program_does_with_the_signal_stays_so(
    tmp_path: Path, code: str, status: int, said: str
) -> None:
    found, printed, reported = Trainer(tmp_path, code).end()
    assert (found, printed) == (status, said)
    assert reported.count("trainer has ended: ") == 1


@pytest.mark.parametrize(
    "child",
    [
        "child = os.fork()\nif not child: time.sleep(60)",
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
    script = tmp_path / "trainer.py"
    script.write_text(PRELUDE + code)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, f"{-signal.SIGTERM}\nparent goes on\n"), done.stderr


def test_only_the_main_thread_handles_signals() -> None:
    found: list[bool] = []
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a watch of another test may handle it
    try:
        thread = threading.Thread(target=lambda: found.append(Termination([]).install()))
        thread.start()
        thread.join(60)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == [False]
