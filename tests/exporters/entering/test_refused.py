"""Processes that are not entered, or in another way: each continues, and the reason is said."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heapwatch.entering.agent import answer_to
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.entering.ptrace import IS_SUPPORTED
from tests.support.entered_programs import LEAKING, SERVED, ask, program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]


def test_a_process_that_only_waits_is_not_entered_and_continues(tmp_path: Path) -> None:
    with program("import time\nprint(1, flush=True)\ntime.sleep(600)", tmp_path) as process:
        time.sleep(0.5)
        with pytest.raises(CannotEnter, match="waits outside of Python in its only thread"):
            ask(process.pid, "leave")
        assert process.poll() is None


def test_a_process_that_is_long_in_c_code_is_not_entered_later(tmp_path: Path) -> None:
    busy = """
        import hashlib, sys
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 8_000_000)
        print(sorted(name for name in sys.modules if name.startswith("heapwatch")), flush=True)
        sys.stdin.read()
    """
    with program(busy, tmp_path) as process:
        time.sleep(0.5)
        with pytest.raises(CannotEnter, match="has not run Python code in its main thread for 0 s"):
            ask(process.pid, "serve", wait_seconds=0.2, **SERVED)
        assert process.stdout is not None
        assert process.stdout.readline() == "[]\n"


def test_a_process_that_can_import_nothing_continues(tmp_path: Path) -> None:
    shut = "import os, sys, time\nsys.meta_path.clear()\nprint(1, flush=True)\nwhile True: time.sleep(0.01)"
    with program(shut, tmp_path) as process:
        with pytest.raises(CannotEnter, match="cannot "):
            ask(process.pid, "serve", **SERVED)
        assert process.poll() is None


def test_a_process_that_can_open_no_file_continues_and_prints_nothing(tmp_path: Path) -> None:
    full = """
        import os, resource, select, sys, threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("ready", flush=True)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 64))
        while not select.select([sys.stdin], [], [], 0.01)[0]:
            pass
        sys.exit(7)
    """
    with program(full, tmp_path) as process:
        with pytest.raises(CannotEnter, match="too many files open"):
            ask(process.pid, "serve", **SERVED)
        assert process.communicate("end\n", timeout=30) == ("", None)
        assert process.returncode == 7


def test_what_the_program_started_itself_is_left_alone(tmp_path: Path) -> None:
    own = (
        "import heapwatch\nheapwatch.start('own', port=0)\nprint(1, flush=True)\nwhile True: sum(range(100))"
    )
    with program(own, tmp_path, "-W", "error") as process:
        assert ask(process.pid, "serve", **SERVED)["already"] is True
        with pytest.raises(CannotEnter, match="runs Heapwatch by itself, not by attach"):
            ask(process.pid, "leave")


def test_processes_that_cannot_be_entered_are_distinguished(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        with pytest.raises(CannotEnter, match=r"\(sleep\) does not run Python"):
            ask(other.pid, "leave")
        other.kill()
    with program(LEAKING, tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        with pytest.raises(
            CannotEnter, match=f"is stopped: continue it first with `kill -CONT {process.pid}`"
        ):
            ask(process.pid, "leave")
        process.send_signal(signal.SIGCONT)
        hold = f"import ctypes\nctypes.CDLL(None).ptrace(0x4206, {process.pid}, 0, 0)\nprint(1, flush=True)"
        with subprocess.Popen(
            [sys.executable, "-c", f"{hold}\ninput()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holding:
            assert holding.stdout is not None
            assert holding.stdout.readline() == b"1\n"
            with pytest.raises(CannotEnter, match=f"held by another program, .*: process {holding.pid}"):
                ask(process.pid, "leave")
            holding.kill()


def test_a_process_whose_threads_are_greenlets_is_not_entered(tmp_path: Path) -> None:
    """As after `gevent.monkey.patch_all()`: what is started there ends with the thread that starts it."""
    patched = "import _thread\n_thread.start_new_thread = lambda *arguments: 0\n"
    with program(patched + "import time\nprint('ready', flush=True)\ntime.sleep(60)", tmp_path) as process:
        with pytest.raises(CannotEnter, match="replaces the threads of Python, as gevent"):
            ask(process.pid, "leave")
        assert process.poll() is None


@pytest.mark.parametrize(("switch", "why"), [("on", "too many of its files are open"), ("off", "SERVE=off")])
def test_a_process_that_serves_nothing_says_why(
    switch: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_server: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("heapwatch.http.server.Server.start", refused)
    monkeypatch.setenv("HEAPWATCH_SERVE", switch)
    assert why in answer_to({"action": "serve", **SERVED})["error"]
    assert answer_to({"action": "leave"}) == {"error": "does not run Heapwatch"}


@pytest.fixture
def without_ptrace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heapwatch.entering.ptrace.IS_SUPPORTED", False)


@pytest.mark.usefixtures("without_ptrace")
def test_elsewhere_the_interpreters_own_way_is_taken(tmp_path: Path) -> None:
    receiving = """
        import signal, sys
        def run_file(*_):
            exec(compile(open(sys.argv[0] + ".asked").read(), "asked", "exec"), vars(sys.modules["__main__"]))
        signal.signal(signal.SIGUSR1, run_file)
        print("ready", flush=True)
        while True:
            sum(range(100))
    """

    def remote_exec(pid: int, script: str) -> None:
        (tmp_path / "train.py.asked").write_text(Path(script).read_text())
        os.kill(pid, signal.SIGUSR1)

    with program(receiving, tmp_path) as process:
        entered = EnteredProcess(process.pid, remote_exec)
        entered._same_version = lambda: True  # a link of the virtual environment has another name
        with entered:
            assert entered.ask("serve", **SERVED)["already"] is False


@pytest.mark.usefixtures("without_ptrace")
def test_a_script_that_was_not_run_in_time_is_replaced_by_an_empty_one(tmp_path: Path) -> None:
    asked = []
    with program(LEAKING, tmp_path) as process:
        entered = EnteredProcess(process.pid, lambda pid, script: asked.append(script))
        entered._same_version = lambda: True
        with entered, pytest.raises(CannotEnter, match="has not run Python code"):
            entered.ask("leave", wait_seconds=0.2)
    assert asked == [str(entered.folder / "first.py"), os.devnull]


@pytest.mark.parametrize(
    ("pid", "why"),
    [
        (2**22 + 1, "there is no process"),
        (-1, "there is no process"),
        (2**80, "there is no process"),
        pytest.param(os.getpid(), "is heapwatch itself", id="own"),
    ],
)
def test_a_process_that_is_none_is_not_entered(pid: int, why: str) -> None:
    with pytest.raises(CannotEnter, match=why):
        EnteredProcess(pid)
