"""An exporter starts inside a real process; `sys.remote_exec`, which this Python may lack, is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heapwatch.injection import CannotInject, inject
from tests.hostile_files import HOSTILE

FOREIGN = """
    import signal, sys, time
    def run_file(*_):
        exec(compile(open("asked").read(), "asked", "exec"), vars(sys.modules["__main__"]))
    signal.signal(signal.SIGUSR1, run_file)
    history = []
    print("ready", flush=True)
    while True:
        history.append(bytearray(10_000))
        time.sleep(0.01)
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a file when it is asked to, as Python 3.14 does."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(FOREIGN))
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # The command itself is refused, whatever Python it runs on.
    refused = {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}
    environment = {**kept, **refused, "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets")}
    with subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@pytest.fixture
def remote_exec(foreign: subprocess.Popen[bytes], tmp_path: Path) -> Callable[[int, str], None]:
    def run(pid: int, script: str) -> None:
        (tmp_path / "asked").write_text(Path(script).read_text())
        os.kill(pid, signal.SIGUSR1)

    return run


def test_the_process_serves_and_explains_itself(
    foreign: subprocess.Popen[bytes], remote_exec: Callable[[int, str], None]
) -> None:
    url = inject(foreign.pid, "robots", port=0, remote_exec=remote_exec)
    with urllib.request.urlopen(f"{url}metrics") as answer:
        assert 'trainer="robots"' in answer.read().decode()
    with urllib.request.urlopen(f"{url}explain") as answer:
        assert json.load(answer)["verdict"] == "too early"
    assert foreign.poll() is None


def test_what_goes_wrong_inside_is_told_and_harms_nothing(
    foreign: subprocess.Popen[bytes], remote_exec: Callable[[int, str], None]
) -> None:
    with pytest.raises(CannotInject, match=r"cannot start Heapwatch: .*Error: "):
        inject(foreign.pid, "robots", host="192.0.2.1", port=0, remote_exec=remote_exec)
    assert foreign.poll() is None


def test_a_process_that_runs_no_python_is_not_waited_for_for_ever() -> None:
    with pytest.raises(CannotInject, match="has not run Python code for 0 s"):
        inject(os.getpid(), "robots", remote_exec=lambda pid, script: None, wait_seconds=0.2)


def test_what_the_interpreter_refuses_is_told() -> None:
    def refused(pid: int, script: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    with pytest.raises(CannotInject, match=r"does not run code from outside: .*not permitted"):
        inject(os.getpid(), "robots", remote_exec=refused)


@pytest.mark.parametrize(
    "kind", [kind for kind in HOSTILE if kind not in ("a link to nothing", "other JSON")]
)
def test_an_answer_that_is_none_is_one_line(kind: str) -> None:
    def answers(_pid: int, script: str) -> None:
        HOSTILE[kind](Path(script).with_name("answer.json"))

    with pytest.raises(CannotInject, match="does not answer as Heapwatch does"):
        inject(os.getpid(), "robots", remote_exec=answers)


def test_an_older_python_says_what_it_takes() -> None:
    with pytest.raises(CannotInject, match=r"it takes 3\.14 here and in the process"):
        inject(os.getpid(), "robots", remote_exec=None)


def test_the_command_says_why_it_stays_outside(foreign: subprocess.Popen[bytes], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "heapwatch.cli.main", "attach", str(foreign.pid), "--port", "0"]
    environment = {
        **os.environ,
        "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets"),
        "HEAPWATCH_STATE": str(tmp_path),
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as attached:
        assert attached.stdout is not None
        line = attached.stdout.readline()
        attached.terminate()
        _, errors = attached.communicate(timeout=30)
    assert "(train) at http://127.0.0.1:" in line
    assert "cannot find what grows in the process: " in errors
