"""`heapwatch explain PID`, `attach` and `detach` as commands, on a process that has no Heapwatch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from heapwatch.entering.tracee import IS_SUPPORTED
from tests.exporters.entering.programs import LEAKING, program

pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "heapwatch.cli.main", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=120)


def test_a_visit_ends_when_the_time_is_up_with_what_is_known(tmp_path: Path) -> None:
    with program(LEAKING, tmp_path) as process:
        done = run("explain", process.pid, "--seconds", 3, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["verdict"] == "too early"
        assert done.stderr.splitlines() == [
            f"process {process.pid} (train) is entered, for 3 s at most",
            f"process {process.pid} is left",
        ]
        assert process.poll() is None


def test_control_c_leaves_with_what_is_known(tmp_path: Path) -> None:
    with (
        program(LEAKING, tmp_path) as process,
        subprocess.Popen(
            command("explain", process.pid), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as visit,
    ):
        assert visit.stderr is not None
        visit.stderr.readline()
        visit.send_signal(signal.SIGINT)
        output, errors = visit.communicate(timeout=60)
        assert visit.returncode in (0, 3), errors
        assert "Traceback" not in errors
        assert ("too early" in output) == (visit.returncode == 0)


def test_a_process_that_ends_meanwhile_is_explained_as_far_as_it_is_known(tmp_path: Path) -> None:
    ending = LEAKING.replace("while True", "until = time.monotonic() + 4\n    while time.monotonic() < until")
    with program(ending, tmp_path) as process:
        done = run("explain", process.pid)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("too early")
        done = run("explain", process.pid)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == f"heapwatch: process {process.pid} has ended already\n"


def test_attach_returns_and_detach_takes_it_out(tmp_path: Path) -> None:
    with program(LEAKING, tmp_path) as process:
        attached = run("attach", process.pid, "--port", 0)
        assert attached.returncode == 0, attached.stderr
        assert f"process {process.pid} (train) at http://127.0.0.1:" in attached.stdout
        again = run("attach", process.pid)
        assert f"process {process.pid} runs Heapwatch already, at http://127.0.0.1:" in again.stdout
        assert (run("detach", process.pid).returncode, psutil.Process(process.pid).num_threads()) == (0, 1)
        never = run("detach", process.pid)
        assert never.returncode == 1
        assert never.stderr == f"heapwatch: process {process.pid} does not run Heapwatch\n"


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
