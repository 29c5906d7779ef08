"""`heapwatch explain PID`, `attach` and `detach` on a process that has no Heapwatch, and on its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from heapwatch.cli.explain import with_workers
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.entering.ptrace import IS_SUPPORTED
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.machine.groups import Member
from tests.support.entered_programs import CRASHES, ENDING, ENTERED, LEAKING, LEFT, program

enters = pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "heapwatch.cli.main", *map(str, words)]


@pytest.fixture
def leaking(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with program(LEAKING, tmp_path) as process:
        yield process


@pytest.mark.slow
@enters
def test_a_visit_ends_when_the_time_is_up_with_what_is_known(
    leaking: subprocess.Popen[str], run: Any
) -> None:
    code, printed, errors = run("explain", leaking.pid, "--seconds", "8", "--json")
    assert (code, json.loads(printed)["verdict"]) == (0, "too early")
    assert errors.splitlines() == [
        f"process {leaking.pid} (train) is entered, for 8 s at most",
        f"process {leaking.pid} is left",
    ]
    assert leaking.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="a machine is read on Linux alone")
def test_a_shell_that_has_started_nothing_else_is_no_machine(tmp_path: Path) -> None:
    code = (
        f"{sys.executable} -m heapwatch.cli.main explain $$ > {tmp_path}/out 2>&1; echo $? >> {tmp_path}/out"
    )
    with subprocess.Popen(["sh", "-c", code]) as shell:
        shell.wait(60)
    *_, said, ended = (tmp_path / "out").read_text().splitlines()
    assert ended == "3"
    assert said.endswith("does not run Python")


@pytest.mark.skipif(sys.platform != "linux", reason="a machine is read on Linux alone")
def test_control_c_while_the_machine_is_read_is_one_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heapwatch.cli.machine.survey", Mock(side_effect=KeyboardInterrupt))
    assert run("explain") == (3, "", "heapwatch: interrupted before a process was entered\n")


@enters
def test_control_c_leaves_with_what_is_known(leaking: subprocess.Popen[str]) -> None:
    with subprocess.Popen(
        command("explain", leaking.pid), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as visit:
        assert visit.stderr is not None
        visit.stderr.readline()
        visit.send_signal(signal.SIGINT)
        output, errors = visit.communicate(timeout=60)
    assert visit.returncode in (0, 3), errors
    assert "Traceback" not in errors
    assert ("too early" in output) == (visit.returncode == 0)


EXPLAINED = 8  # seconds
CRASHED = "process {} (train) was killed by SIGSEGV {} (signal 11)"


@pytest.mark.slow
@enters
@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (CRASHES, 4, CRASHED),
        ("sys.exit(3)", 4, "process {} (train) ended with exit code 3 {}"),
        ("pass", 0, "process {} (train) ended by itself {} (exit code 0)"),
    ],
)
def test_a_process_that_ends_during_the_visit_is_not_said_to_be_left(
    end: str, code: int, said: str, tmp_path: Path, run: Any
) -> None:
    with program(ENDING.format(seconds=EXPLAINED, end=end), tmp_path) as process:
        ended, printed, errors = run("explain", process.pid)
        assert (ended, printed.startswith("too early")) == (code, True), errors
        assert errors.splitlines()[1:] == [said.format(process.pid, "during the visit")]
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it may take a while to end
        gone = f"heapwatch: process {process.pid} has ended already\n"
        assert run("explain", process.pid) == (3, "", gone)
        assert process.wait(30) == {CRASHES: -signal.SIGSEGV, "sys.exit(3)": 3, "pass": 0}[end]


@pytest.mark.slow
@enters
def test_a_process_that_crashes_when_it_was_left_is_not_said_to_be_left(tmp_path: Path, run: Any) -> None:
    with program(ENDING.format(seconds=LEFT, end=CRASHES), tmp_path) as process:
        code, printed, errors = run("explain", process.pid, "--seconds", "2", "--json")
        assert (code, json.loads(printed)["verdict"]) == (4, "too early")
        assert errors.splitlines()[1:] == [CRASHED.format(process.pid, "right after the visit")]


@enters
def test_a_process_that_crashes_when_it_is_entered_is_not_said_to_have_ended(
    tmp_path: Path, run: Any
) -> None:
    with program(ENDING.format(seconds=ENTERED, end=CRASHES), tmp_path) as process:
        code, _, errors = run("explain", process.pid)
        assert code == 4
        assert errors.splitlines()[-1] == "heapwatch: " + CRASHED.format(process.pid, "during the visit")


@enters
def test_attach_and_detach_say_that_a_process_has_crashed(tmp_path: Path, run: Any) -> None:
    with program(ENDING.format(seconds=ENTERED, end=CRASHES), tmp_path) as process:
        code, printed, errors = run("attach", process.pid, "--port", "0")
        assert (code, printed) == (4, "")
        assert f"process {process.pid} (train) was killed by SIGSEGV" in errors
    with program(ENDING.format(seconds=LEFT, end=CRASHES), tmp_path) as process:
        assert run("attach", process.pid, "--port", "0")[0] == 0
        said = CRASHED.format(process.pid, "right after it was entered")
        assert run("detach", process.pid) == (4, "", f"heapwatch: {said}\n")


@enters
def test_attach_returns_and_detach_takes_it_out(leaking: subprocess.Popen[str], run: Any) -> None:
    pid = leaking.pid
    for words in ("(train) at http://127.0.0.1:", "runs Heapwatch already, at http://127.0.0.1:"):
        code, printed, _ = run("attach", pid, "--port", "0")
        assert code == 0
        assert f"process {pid} {words}" in printed
    assert (run("detach", pid)[0], psutil.Process(pid).num_threads()) == (0, 1)
    assert run("detach", pid) == (1, "", f"heapwatch: process {pid} does not run Heapwatch\n")


@enters
def test_attach_says_why_a_process_cannot_be_entered(run: Any) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        code, printed, errors = run("attach", other.pid)
        assert (code, printed) == (1, "")
        assert errors == f"heapwatch: process {other.pid} (sleep) does not run Python\n"
        other.kill()
    assert run("attach", 2**22 + 1) == (1, "", f"heapwatch: there is no process {2**22 + 1}\n")


WHOLE = Finding("worker", None, "memory of the child processes", 4, 10**8, 0.0, 12e6, 1.0)
PARENT = Explanation("leak", 60.0, 12e6, 0.9, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))
ONE, TWO, THREE, FOUR, NEW = (Member(pid, 0.0, "workers of train", True) for pid in (1, 2, 3, 4, 5))
BEFORE = dict.fromkeys((ONE, TWO, THREE, FOUR), 100)
AFTER = {ONE: 110, TWO: 112, THREE: 101, NEW: 900}


def test_the_one_that_grew_most_is_visited_and_named_for_those_like_it() -> None:
    visited = []

    def visit(pid: int) -> Explanation:
        visited.append(pid)
        return INSIDE

    found = with_workers(PARENT, BEFORE, AFTER, visit)
    assert visited == [2]
    assert found.findings[0].path == "env.trajectory"
    assert found.findings[0].type == "list in 2 of 3 workers"


@pytest.mark.parametrize("after", [BEFORE, {}])
def test_workers_that_stayed_as_they_were_are_not_visited(after: dict[Member, int]) -> None:
    assert with_workers(PARENT, BEFORE, after, lambda pid: INSIDE) is PARENT


def test_a_worker_that_cannot_be_entered_leaves_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    def visit(pid: int) -> Explanation:
        raise CannotEnter("no")

    assert with_workers(PARENT, BEFORE, AFTER, visit) is PARENT
    assert capsys.readouterr().err == "heapwatch: cannot find what grows in the workers: no\n"
