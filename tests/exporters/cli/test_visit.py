"""`heapwatch explain PID`, `attach` and `detach` on a process that has no Heapwatch, and on its workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from heapwatch.cli.main import main
from heapwatch.cli.visit import Child, with_workers
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.entering.ptrace import IS_SUPPORTED
from heapwatch.explain.findings import Explanation, Finding
from tests.exporters.entering.programs import LEAKING, program

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
    leaking: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(leaking.pid), "--seconds", "3", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == "too early"
    assert printed.err.splitlines() == [
        f"process {leaking.pid} (train) is entered, for 3 s at most",
        f"process {leaking.pid} is left",
    ]
    assert leaking.poll() is None


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


@pytest.mark.slow
@enters
def test_a_process_that_ends_meanwhile_is_explained_as_far_as_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = LEAKING.replace("while True", "until = time.monotonic() + 4\n    while time.monotonic() < until")
    with program(ending, tmp_path) as process:
        assert main(["explain", str(process.pid)]) == 0
        assert capsys.readouterr().out.startswith("too early")
        assert main(["explain", str(process.pid)]) == 3
        printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"heapwatch: process {process.pid} has ended already\n")


@enters
def test_attach_returns_and_detach_takes_it_out(
    leaking: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pid = str(leaking.pid)
    assert main(["attach", pid, "--port", "0"]) == 0
    assert f"process {pid} (train) at http://127.0.0.1:" in capsys.readouterr().out
    assert main(["attach", pid]) == 0
    assert f"process {pid} runs Heapwatch already, at http://127.0.0.1:" in capsys.readouterr().out
    assert (main(["detach", pid]), psutil.Process(leaking.pid).num_threads()) == (0, 1)
    assert main(["detach", pid]) == 1
    assert capsys.readouterr().err == f"heapwatch: process {pid} does not run Heapwatch\n"


@enters
def test_attach_says_why_it_stays_outside() -> None:
    with (
        subprocess.Popen(["sleep", "60"]) as other,
        subprocess.Popen(
            command("attach", other.pid, "--port", 0),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as attached,
    ):
        assert attached.stdout is not None
        assert "(sleep) at http://127.0.0.1:" in attached.stdout.readline()
        attached.terminate()
        errors = attached.communicate(timeout=30)[1]
        assert errors.startswith("heapwatch: cannot find what grows in the process: ")
        assert errors.endswith("(sleep) does not run Python\n")
        other.kill()


WHOLE = Finding("worker", None, "memory of the child processes", 4, 10**8, 0.0, 12e6, 1.0)
PARENT = Explanation("leak", 60.0, 12e6, 0.9, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))
BEFORE = {Child(pid, 1.0): 100 for pid in (1, 2, 3, 4)}
AFTER = {Child(1, 1.0): 110, Child(2, 1.0): 112, Child(3, 1.0): 101}


def test_the_one_that_grew_most_is_visited_and_named_for_those_like_it() -> None:
    visited = []

    def visit(pid: int) -> Explanation:
        visited.append(pid)
        return INSIDE

    replaced = Child(4, 99.0)  # another process with its number
    found = with_workers(PARENT, BEFORE, {**AFTER, replaced: 900}, visit)
    assert visited == [2]
    assert found.findings[0].path == "env.trajectory"
    assert found.findings[0].type == "list in 2 of 4 workers"


@pytest.mark.parametrize("after", [BEFORE, {}])
def test_workers_that_stayed_as_they_were_are_not_visited(after: dict[Child, int]) -> None:
    assert with_workers(PARENT, BEFORE, after, lambda pid: INSIDE) is PARENT


def test_a_worker_that_cannot_be_entered_leaves_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    def visit(pid: int) -> Explanation:
        raise CannotEnter("no")

    assert with_workers(PARENT, BEFORE, AFTER, visit) is PARENT
    assert capsys.readouterr().err == "heapwatch: cannot find what grows in the workers: no\n"
