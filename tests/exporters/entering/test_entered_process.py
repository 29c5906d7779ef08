"""Real processes are entered and left; nothing of them changes, whatever they do."""

from __future__ import annotations

import json
import logging
import os
import random
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
from tests.support.entered_programs import LEAKING, SERVED, ask, program
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]


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
        wait_for(lambda: psutil.Process(process.pid).num_threads() == 2, "it is left")
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
    """The program's own thread is alone again; the explanation's thread looks once a second."""
    return wait_for(lambda: psutil.Process(pid).num_threads() == 1, "it is left")


def test_an_explanation_is_written_until_its_folder_or_the_command_is_gone(tmp_path: Path) -> None:
    with program(LEAKING, tmp_path) as process:
        with EnteredProcess(process.pid) as entered:
            assert entered.ask("explain", name="robots") == {"already": False, "enabled": True}
            assert wait_for(lambda: entered.latest("explanation.json"))["verdict"] == "too early"
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


def test_a_visit_ends_with_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_explanation: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("heapwatch.explain.findings.Explanation.as_json", broken)
    asked = {"action": "explain", "name": "robots", "folder": str(tmp_path), "sender": os.getpid()}
    assert answer_to(asked) == {"already": False, "enabled": True}
    log = logging.getLogger("heapwatch")  # the last thing that a visit gives back
    wait_for(lambda: not lifecycle.running() and not log.disabled)
