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

from heapwatch.explain.findings import Explanation, Finding, FindingKind, narrative
from heapwatch.explain.sites import Site
from heapwatch.explain.workers import (
    COMPARED_SECONDS,
    STAY_SECONDS,
    Worker,
    WorkerVisits,
    command_for,
    grown_most,
    grows_in_workers,
    with_names,
)
from heapwatch.measure.process.process_tree import is_housekeeper
from tests.support.waiting import wait_for

WHOLE = Finding("worker", None, "memory of the child processes", 2, 10**8, 0.0, 6e6, 1.0)
PARENT = Explanation("growing", 60.0, 6e6, 1.0, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))


def printing(text: str, code: int = 0) -> Callable[[int], list[str]]:
    return lambda pid: [sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})"]


def visits_of(command: Callable[[int], list[str]], clock: list[float]) -> WorkerVisits:
    grown = iter(range(1000))
    return WorkerVisits(lambda: clock[0], lambda: {7: 100 * next(grown), 8: 5}, command)


def visited(visits: WorkerVisits, clock: list[float]) -> None:
    visits.step(True)
    clock[0] += COMPARED_SECONDS
    visits.step(True)
    until = time.monotonic() + 30
    while visits._visitor is not None and time.monotonic() < until:
        visits.step(True)
        time.sleep(0.01)
    assert visits._visitor is None


def test_the_workers_get_the_name_that_the_command_finds_until_they_stop_growing(clock):
    visits = visits_of(printing(json.dumps(INSIDE.as_json())), clock)
    visited(visits, clock)
    (found,) = visits.with_names(PARENT).findings
    assert (found.path, found.type) == ("env.trajectory", "list in 1 of 2 workers")
    clock[0] += 1000
    visited(visits, clock)
    assert visits.visits == 1  # it is not due again for half an hour
    visits.step(False)
    assert visits.with_names(PARENT) is PARENT


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
@pytest.mark.parametrize("code", ["3", "0"])
def test_a_worker_that_dies_of_a_visit_is_the_last_that_is_entered(clock, caplog, code):
    worker = subprocess.Popen(
        [sys.executable, "-S", "-c", "raise SystemExit(int(input()))"], stdin=subprocess.PIPE
    )
    grown = iter(range(1000))
    command = [sys.executable, "-S", "-c", ""]
    visits = WorkerVisits(lambda: clock[0], lambda: {worker.pid: 100 * next(grown)}, lambda pid: command)
    visits.step(True)
    clock[0] += COMPARED_SECONDS
    visits.step(True)
    assert worker.stdin is not None
    worker.stdin.write(f"{code}\n".encode())
    worker.stdin.close()
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    for _ in range(2):
        while visits._visitor is not None:
            visits.step(True)
        clock[0] += 1000
        visits.step(True)
        clock[0] += COMPARED_SECONDS
        visits.step(True)
    visits.stop()
    assert worker.wait(30) == int(code)
    assert (visits.visits == 1) is (code == "3")
    assert ("ended with exit code 3 during a visit" in caplog.text) is (code == "3")


def told_to_end(then: str, ready: Path) -> Callable[[int], list[str]]:
    """A command that evaluates `then` at SIGTERM, and makes the file `ready` once it would do so."""
    code = (
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: {then})\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)"
    )
    return lambda pid: [sys.executable, "-S", "-c", code]


def begun(visits: WorkerVisits, clock: list[float], ready: Path) -> subprocess.Popen[bytes]:
    visits.step(True)
    clock[0] += COMPARED_SECONDS
    visits.step(True)
    visitor = visits._visitor
    assert visitor is not None
    wait_for(ready.exists)
    return visitor


def test_a_visit_that_takes_too_long_is_ended_and_that_is_said(clock, tmp_path, caplog):
    ready = tmp_path / "ready"
    visits = visits_of(told_to_end("None", ready), clock)
    visitor = begun(visits, clock, ready)
    with caplog.at_level("INFO", "heapwatch"):
        for _ in range(2):
            clock[0] += 2 * STAY_SECONDS
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


def finding(kind: FindingKind, path: str | None, rate: float, items: float = 60.0, **more: Any) -> Finding:
    """Something that grows by so many bytes and items a minute."""
    return Finding(kind, path, "list of bytearray", 100, 10**6, items, rate, 0.8, **more)


ALL_WORKERS = finding(
    "worker", None, 12e6, 0.0, remedy="`heapwatch explain PID` of one of them", is_leak=True
)
OWN = finding("container", "trainer.log", 3e6)
TRAINER = Explanation("growing", 60.0, 15e6, 0.9, (ALL_WORKERS, OWN))
TRAJECTORY = finding("container", "env.trajectory", 2.9e6, site=Site("envs.py", 31, "step"), is_leak=True)
WORKER = Explanation("leak", 60.0, 3e6, 1.0, (TRAJECTORY,))
FOUR = Worker(7, 4, 4)


def test_the_one_that_grew_most_stands_for_those_that_grew_like_it():
    before = {1: 100, 2: 100, 3: 100, 4: 100}
    assert grown_most(before, {1: 110, 2: 112, 3: 101, 9: 900}) == (2, 2)
    assert grown_most(before, {1: 100, 2: 90}) is None
    assert grown_most({}, {}) is None


def test_the_growth_of_the_workers_is_that_of_the_name_in_all_of_them():
    found = with_names(TRAINER, WORKER, FOUR)
    first, own = found.findings
    assert (first.kind, first.path, first.is_leak) == ("worker", "env.trajectory", True)
    assert first.bytes_per_minute == pytest.approx(11.6e6)
    assert first.share == pytest.approx(0.8 * 11.6 / 12)
    assert own is OWN
    assert found.verdict == "leak"
    text = narrative(found)
    assert "`env.trajectory` (list of bytearray in 4 of 4 workers" in text
    assert "filled at envs.py:31 in `step`" in text
    assert "heapwatch explain PID" not in text


def test_what_the_name_does_not_explain_stays_if_it_is_the_most():
    one = Explanation("healthy", 60.0, 1e6, 1.0, (finding("container", "env.cache", 1e6),))
    found = with_names(TRAINER, one, FOUR)
    rates = {each.path: each.bytes_per_minute for each in found.findings if each.kind == "worker"}
    assert rates == {"env.cache": 4e6, None: 8e6}
    assert sum(each.share for each in found.findings if each.kind == "worker") == pytest.approx(0.8)
    assert found.verdict == "growing"


@pytest.mark.parametrize(
    "parent",
    [
        Explanation("healthy", 60.0, 0.0, 0.0),
        Explanation("leak", 60.0, 1e6, 1.0, (finding("worker", None, 1e6),)),  # more and more processes
    ],
)
def test_nothing_is_named_where_workers_do_not_grow_or_become_more(parent):
    assert grows_in_workers(parent) is None
    assert with_names(parent, WORKER, FOUR) is parent
    unnamed = Explanation("growing", 60.0, 3e6, 0.0, (finding("native", None, 3e6),))
    assert with_names(TRAINER, unnamed, FOUR) is TRAINER
