"""Real processes are entered and left; nothing of them changes, whatever they do."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from heapwatch import lifecycle
from heapwatch.entering.agent import answer_to
from heapwatch.entering.elf import exported
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.entering.machine_code import FUNCTIONS
from heapwatch.entering.ptrace import IS_SUPPORTED, Memory, Tracee
from heapwatch.runtime.own_files import replace
from tests.exporters.entering.programs import LEAKING, program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]

SERVED = {"name": "robots", "host": "127.0.0.1", "port": 0}
# What a program can see of a visitor, printed for each line of its stdin.
OBSERVED = """
    import signal, sys, threading, time, warnings
    def seen():
        handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
        return dict(threads=threading.active_count(), path=sys.path[:], finders=sys.meta_path[:],
            hooks=sys.path_hooks[:], handlers=handlers, wakeup=signal.set_wakeup_fd(-1), hook=sys.excepthook,
            filters=warnings.filters[:], thread_hook=threading.excepthook, trace=sys.gettrace(),
            profile=sys.getprofile(), names=sorted(vars(sys.modules["__main__"])))
    asked = []
    def ask():
        for line in sys.stdin:
            asked.append(line)
    before = now = None
    threading.Thread(target=ask, daemon=True).start()
    before = seen()
    print("ready", flush=True)
    while True:
        if asked:
            asked.clear()
            now = seen()
            print({name: (before[name], now[name]) for name in now if now[name] != before[name]}, flush=True)
        time.sleep(0.001)
"""
BUSY = """
    import os, signal, threading, time
    import numpy
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    values = numpy.arange(100_000, dtype=numpy.float64)
    def work():
        kept = {}
        while True:
            for at in range(5000):
                kept[at] = [at] * 7
            time.sleep(0.001)
    threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    while True:
        for _ in range(50):
            assert float((values * 2.0 + 1.0).sum()) == 10_000_000_000.0 - 100_000 + 100_000, "wrong numbers"
        began = time.monotonic()
        time.sleep(0.002)
        assert time.monotonic() - began >= 0.0019, "woken early"
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
"""


def ask(pid: int, action: str, **details: Any) -> dict[str, Any]:
    with EnteredProcess(pid) as entered:
        return entered.ask(action, **details)


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def test_a_process_without_any_package_serves_what_grows_in_it_and_nothing_stays(tmp_path: Path) -> None:
    with program(LEAKING, tmp_path) as process:
        with pytest.raises(CannotEnter, match=r"cannot start Heapwatch: .*Error: "):
            ask(process.pid, "serve", **{**SERVED, "host": "192.0.2.1"})
        with pytest.raises(CannotEnter, match="does not run Heapwatch"):
            ask(process.pid, "leave")
        url = ask(process.pid, "serve", **SERVED)["url"]
        assert 'trainer="robots"' in read(f"{url}metrics")
        assert json.loads(read(f"{url}explain"))["verdict"] == "too early"
        assert ask(process.pid, "serve", **SERVED) == {"url": url, "already": True}
        assert ask(process.pid, "leave") == {"threads": []}
        inside = psutil.Process(process.pid)
        assert inside.net_connections() == []
        assert has_been_left(process.pid)
        assert process.poll() is None
        assert list((tmp_path / "targets").glob("*.json")) == []


def test_a_program_sees_no_trace_of_it(tmp_path: Path) -> None:
    with program(OBSERVED, tmp_path) as process:
        for action, details in (("serve", SERVED), ("leave", {}), ("explain", {"name": "robots"})):
            ask(process.pid, action, **details)
        end = time.monotonic() + 30  # the thread that writes the explanation looks once a second
        while psutil.Process(process.pid).num_threads() > 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("compare\n")
        process.stdin.flush()
        assert process.stdout.readline() == "{}\n"


def test_what_is_written_at_the_end_of_a_visit_does_not_prolong_it(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        with suppress(OSError):
            while True:
                replace(folder / "explanation.json", "{}")

    with program(LEAKING, tmp_path) as process:
        for _ in range(50):
            with EnteredProcess(process.pid) as entered:
                writer = threading.Thread(target=write, args=(entered.folder,), daemon=True)
                writer.start()
                time.sleep(0.002)
            writer.join(5)
            assert not writer.is_alive()
            assert list(entered.folder.parent.glob(f"{entered.folder.name}*")) == []


def test_memory_is_back_after_the_first_round(tmp_path: Path) -> None:
    idle = "import time\nprint(1, flush=True)\nwhile True: time.sleep(0.001)"
    with program(idle, tmp_path) as process:
        levels, files = [], []
        for _ in range(4):
            ask(process.pid, "serve", **SERVED)
            ask(process.pid, "leave")
            levels.append(psutil.Process(process.pid).memory_info().rss)
            files.append(psutil.Process(process.pid).num_fds())
    assert levels[-1] - levels[1] < 2e6
    assert files[-1] == files[0]


def test_many_rounds_into_a_busy_program_change_no_number_in_it(tmp_path: Path) -> None:
    with program(BUSY, tmp_path, "-W", "error") as process:
        for _ in range(60):
            with Memory(process.pid) as memory:
                functions = exported(process.pid, ("Py_GetVersion", *FUNCTIONS))
                with Tracee(process.pid, memory) as thread:
                    thread.code(functions)
                    version = thread.read_text(thread.call(functions["Py_GetVersion"]), 100)
                    assert version == sys.version
            time.sleep(random.random() * 0.01)
        for _ in range(5):
            ask(process.pid, "serve", **SERVED)
            ask(process.pid, "leave")
        time.sleep(0.2)
        assert process.poll() is None, process.communicate(timeout=10)


def has_been_left(pid: int) -> bool:
    """Whether the program's own thread is alone again; the explanation's thread looks once a second."""
    end = time.monotonic() + 30
    while psutil.Process(pid).num_threads() > 1 and time.monotonic() < end:
        time.sleep(0.05)
    return psutil.Process(pid).num_threads() == 1


def test_an_explanation_is_written_until_its_folder_or_the_command_is_gone(tmp_path: Path) -> None:
    with program(LEAKING, tmp_path) as process:
        with EnteredProcess(process.pid) as entered:
            assert entered.ask("explain", name="robots") == {"already": False, "enabled": True}
            end = time.monotonic() + 30
            while entered.latest("explanation.json") is None and time.monotonic() < end:
                time.sleep(0.05)
            assert entered.latest("explanation.json")["verdict"] == "too early"
        assert has_been_left(process.pid)
        command = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        with EnteredProcess(process.pid) as entered:
            entered.ask("explain", name="robots", sender=command.pid)
            command.kill()
            command.wait(30)
            assert has_been_left(process.pid)
            assert not entered.folder.exists(), "the killed command would have removed it"


def test_a_main_thread_that_waits_for_others_is_entered_beside_it(tmp_path: Path) -> None:
    waiting = """
        import threading, time
        thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
        thread.start()
        print("ready", flush=True)
        thread.join()
    """
    with program(waiting, tmp_path) as process:
        assert ask(process.pid, "serve", **SERVED)["already"] is False
        assert process.poll() is None


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


def test_children_that_are_forked_during_the_imports_of_a_visit_can_import(tmp_path: Path) -> None:
    forking = """
        import os, select, sys, threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            child, until = os.fork(), time.monotonic() + 30
            if not child:
                import asyncio, concurrent.futures, email.message, http.server, json, logging, socket, ssl
                os._exit(0)
            while not os.waitpid(child, os.WNOHANG)[0]:
                if time.monotonic() > until:
                    os.kill(child, 9)
                    sys.exit("a child waits for ever")
                time.sleep(0.001)
        sys.exit(7)
    """
    with program(forking, tmp_path, "-I", "-S", "-W", "ignore") as process:
        ask(process.pid, "serve", **SERVED)
        ask(process.pid, "leave")
        out, _ = process.communicate("end\n", timeout=60)
        assert (out, process.returncode) == ("", 7)


def test_two_at_once_share_one_watch(tmp_path: Path) -> None:
    def serve(_: int) -> dict[str, Any]:
        code = f"""
import json
from heapwatch.entering.elf import exported
from heapwatch.entering.entered_process import EnteredProcess
with EnteredProcess({process.pid}) as entered:
    print(json.dumps(entered.ask('serve', **{SERVED!r})))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    with program(LEAKING, tmp_path) as process, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(serve, range(2)))
    assert len({answer["url"] for answer in answers}) == 1
    assert sorted(answer["already"] for answer in answers) == [False, True]


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


def test_a_visit_ends_with_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_explanation: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("heapwatch.explain.findings.Explanation.as_json", broken)
    asked = {"action": "explain", "name": "robots", "folder": str(tmp_path), "sender": os.getpid()}
    assert answer_to(asked) == {"already": False, "enabled": True}
    end = time.monotonic() + 30
    log = logging.getLogger("heapwatch")  # the last thing that a visit gives back
    while (lifecycle.running() or log.disabled) and time.monotonic() < end:
        time.sleep(0.05)
    assert lifecycle.running() == []
    assert not log.disabled


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
