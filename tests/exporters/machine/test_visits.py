from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding
from heapwatch.machine.groups import Member
from heapwatch.machine.visits import COMPARED_SECONDS, STAY_SECONDS, WorkerVisits, command_for
from heapwatch.measure.process.process_tree import is_housekeeper
from tests.support.waiting import wait_for

WHOLE = Finding("worker", None, "memory of the child processes", 2, 10**8, 0.0, 6e6, 1.0)
PARENT = Explanation("growing", 60.0, 6e6, 1.0, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))


def worker(pid: int) -> Member:
    return Member(pid, 0.0, "workers of train", is_python=True)


def printing(text: str, code: int = 0) -> Callable[[int], list[str]]:
    return lambda pid: [sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})"]


def visits_of(command: Callable[[int], list[str]], clock: Any) -> WorkerVisits:
    grown = iter(range(1000))
    return WorkerVisits(clock, lambda: {worker(7): 100 * next(grown), worker(8): 5}, command)


def visited(visits: WorkerVisits, clock: Any) -> None:
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    until = time.monotonic() + 30
    while visits._visit is not None and time.monotonic() < until:
        visits.step(True)
        time.sleep(0.01)
    assert visits._visit is None


def test_the_workers_get_the_name_that_the_command_finds_until_they_stop_growing(clock):
    visits = visits_of(printing(json.dumps(INSIDE.as_json())), clock)
    visited(visits, clock)
    (found,) = visits.with_names(PARENT).findings
    assert (found.path, found.type) == ("env.trajectory", "list in 1 of 2 workers")
    clock.now += 1000
    visited(visits, clock)
    assert visits.visits == 1  # it is not due again for half an hour
    visits.step(False)
    assert visits.with_names(PARENT) is PARENT


def test_another_group_is_visited_while_the_first_needs_no_further_visit(clock):
    grown, entered = iter(range(1000)), []
    other = Member(9, 0.0, "workers of reward", is_python=True)

    def command(pid: int) -> list[str]:
        entered.append(pid)
        return printing(json.dumps(INSIDE.as_json()))(pid)

    def sizes() -> dict[Member, int]:
        more = next(grown)
        return {worker(7): 100 * more, other: 50 * more}

    visits = WorkerVisits(clock, sizes, command)
    visited(visits, clock)
    visited(visits, clock)
    assert entered == [7, 9]
    for member in (worker(7), other):
        found = visits.inside(member.group)
        assert found is not None
        assert found[1].pid == member.pid


@pytest.mark.parametrize("text", ["", "no JSON", '{"verdict": 1}'])
def test_a_command_that_fails_leaves_the_explanation_as_it_is(clock, text):
    visits = visits_of(printing(text, 3) if text else (lambda pid: [sys.executable, "-c", ""]), clock)
    visited(visits, clock)
    assert visits.with_names(PARENT) is PARENT


def test_a_refusal_is_reported_in_the_log(clock, caplog):
    code = "import sys; print('heapwatch: process 7 runs no Python', file=sys.stderr); sys.exit(3)"
    visits = visits_of(lambda pid: [sys.executable, "-c", code], clock)
    with caplog.at_level("INFO", "heapwatch"):
        visited(visits, clock)
    assert "cannot find what grows in the workers: process 7 runs no Python" in caplog.text
    assert visits.enabled


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how a process has ended")
@pytest.mark.parametrize(
    ("end", "code"),
    [("raise SystemExit(3)", 3), ("raise SystemExit(0)", 0), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_a_worker_that_dies_of_a_visit_is_the_last_that_is_entered(clock, caplog, end, code):
    process = subprocess.Popen([sys.executable, "-S", "-c", "exec(input())"], stdin=subprocess.PIPE)
    grown = iter(range(1000))
    command = [sys.executable, "-S", "-c", ""]
    visits = WorkerVisits(clock, lambda: {worker(process.pid): 100 * next(grown)}, lambda pid: command)
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    assert process.stdin is not None
    process.stdin.write(f"{end}\n".encode())
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    for _ in range(2):
        while visits._visit is not None:
            visits.step(True)
        clock.now += 1000
        visits.step(True)
        clock.now += COMPARED_SECONDS
        visits.step(True)
    visits.stop()
    assert process.wait(30) == code
    assert (visits.visits == 1) is (code == 3)
    assert ("ended with exit code 3 during a visit" in caplog.text) is (code == 3)


def told_to_end(then: str, ready: Path) -> Callable[[int], list[str]]:
    """A command that evaluates `then` at SIGTERM, and makes the file `ready` once it would do so."""
    code = (
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: {then})\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)"
    )
    return lambda pid: [sys.executable, "-S", "-c", code]


def begun(visits: WorkerVisits, clock: Any, ready: Path) -> subprocess.Popen[bytes]:
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    assert visits._visit is not None
    wait_for(ready.exists)
    return visits._visit.command


def test_a_visit_that_takes_too_long_is_ended_and_that_is_said(clock, tmp_path, caplog):
    ready = tmp_path / "ready"
    visits = visits_of(told_to_end("None", ready), clock)
    visitor = begun(visits, clock, ready)
    with caplog.at_level("INFO", "heapwatch"):
        for _ in range(2):
            clock.now += 2 * STAY_SECONDS
            visits.step(True)
    assert visitor.returncode is not None
    assert "the command took too long" in caplog.text
    assert visits.with_names(PARENT) is PARENT


def test_the_command_is_no_worker_and_explains_as_json(monkeypatch):
    monkeypatch.setenv("HEAPWATCH_WORKERS", "off")
    assert not WorkerVisits().enabled
    command = command_for(os.getpid())
    assert is_housekeeper(" ".join(command), "")
    assert not is_housekeeper("python train.py", "")
    shown = subprocess.run([*command[:4], "explain", "--help"], capture_output=True, text=True, timeout=60)
    assert "--json" in shown.stdout, shown.stderr


def test_the_command_is_asked_to_leave_before_it_is_killed(clock, tmp_path):
    left, ready = tmp_path / "left", tmp_path / "ready"
    visits = visits_of(told_to_end(f"(pathlib.Path({str(left)!r}).touch(), sys.exit())", ready), clock)
    begun(visits, clock, ready)
    visits.stop()
    assert left.exists()
