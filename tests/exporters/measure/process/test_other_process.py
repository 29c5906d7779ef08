"""Whether a process still runs, and a name for it that holds no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from heapwatch.measure.process.other_process import is_alive, name_of


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python3", "-u", "runs/train_robots.py", "--key=s3cret"], "train_robots"),
        (["python3", "-X", "dev", "-m", "robots.train", "s3cret"], "robots.train"),
        (["python3", "-c", "s3cret"], "python3"),
        (["python3", "-"], "python3"),
        (["trainer", "s3cret"], "trainer"),
    ],
)
def test_a_process_is_called_after_its_script_module_or_program(words: list[str], name: str) -> None:
    process = SimpleNamespace(pid=7, name=lambda: words[0], cmdline=lambda: words)
    assert name_of(process) == name


def test_a_process_that_ends_while_it_is_looked_at_has_its_number_for_a_name() -> None:
    def ended() -> str:
        raise psutil.NoSuchProcess(7)

    assert name_of(SimpleNamespace(pid=7, name=ended, cmdline=ended)) == "7"


def test_a_process_that_nobody_has_waited_for_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        process = psutil.Process(program.pid)
        assert is_alive(process)
        program.stdin.close()
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process)
    assert not is_alive(process)
