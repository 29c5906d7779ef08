from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.worker_visits import COMPARED_SECONDS, STAY_SECONDS, WorkerVisits, command_for
from heapwatch.measure.process.housekeepers import is_housekeeper

WHOLE = Finding("worker", None, "memory of the child processes", 2, 10**8, 0.0, 6e6, 1.0)
PARENT = Explanation("growing", 60.0, 6e6, 1.0, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def printing(text: str, code: int = 0) -> Callable[[int], list[str]]:
    return lambda pid: [sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})"]


def visits_of(command: Callable[[int], list[str]], clock: Clock) -> WorkerVisits:
    grown = iter(range(1000))
    return WorkerVisits(clock, lambda: {7: 100 * next(grown), 8: 5}, command)


def visited(visits: WorkerVisits, clock: Clock) -> None:
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    until = time.monotonic() + 30
    while visits._visitor is not None and time.monotonic() < until:
        visits.step(True)
        time.sleep(0.01)
    assert visits._visitor is None


def test_the_workers_get_the_name_that_the_command_finds_until_they_stop_growing() -> None:
    clock = Clock()
    visits = visits_of(printing(json.dumps(INSIDE.as_json())), clock)
    visited(visits, clock)
    (found,) = visits.with_names(PARENT).findings
    assert (found.path, found.type) == ("env.trajectory", "list in 1 of 2 workers")
    visited(visits, clock)
    assert visits.visits == 1  # it is not due again
    visits.step(False)
    assert visits.with_names(PARENT) is PARENT


def test_workers_that_do_not_grow_are_not_entered() -> None:
    clock = Clock()
    visits = WorkerVisits(clock, lambda: {7: 100}, printing("{}"))
    for _ in range(5):
        visits.step(True)
        clock.now += COMPARED_SECONDS
    assert visits.visits == 0


@pytest.mark.parametrize("text", ["", "no JSON", '{"verdict": 1}'])
def test_a_command_that_fails_leaves_the_explanation_as_it_is(text: str) -> None:
    clock = Clock()
    visits = visits_of(printing(text, 3) if text else (lambda pid: [sys.executable, "-c", ""]), clock)
    visited(visits, clock)
    assert visits.with_names(PARENT) is PARENT


def test_a_refusal_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    code = "import sys; print('heapwatch: process 7 runs no Python', file=sys.stderr); sys.exit(3)"
    visits = visits_of(lambda pid: [sys.executable, "-c", code], clock)
    with caplog.at_level("INFO", "heapwatch"):
        visited(visits, clock)
    assert "cannot find what grows in the workers: process 7 runs no Python" in caplog.text
    assert visits.enabled


def test_a_visit_that_takes_too_long_is_ended() -> None:
    clock = Clock()
    visits = visits_of(lambda pid: [sys.executable, "-c", "import time; time.sleep(60)"], clock)
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    visitor = visits._visitor
    assert visitor is not None
    clock.now += 2 * STAY_SECONDS
    visits.step(True)
    assert visitor.returncode is not None
    assert visits.with_names(PARENT) is PARENT


def test_it_is_off_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEAPWATCH_WORKERS", "off")
    assert not WorkerVisits().enabled


def test_the_command_is_no_worker_and_explains_as_json() -> None:
    command = command_for(os.getpid())
    assert is_housekeeper(" ".join(command), "")
    assert not is_housekeeper("python train.py", "")
    shown = subprocess.run([*command[:4], "explain", "--help"], capture_output=True, text=True, timeout=60)
    assert "--json" in shown.stdout, shown.stderr


def test_the_command_is_asked_to_leave_before_it_is_killed(tmp_path: Path) -> None:
    clock, left, ready = Clock(), tmp_path / "left", tmp_path / "ready"
    code = (
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(left)!r}).touch(), sys.exit()))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)"
    )
    visits = visits_of(lambda pid: [sys.executable, "-S", "-c", code], clock)
    visits.step(True)
    clock.now += COMPARED_SECONDS
    visits.step(True)
    until = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.01)
    visits.stop()
    assert left.exists()
