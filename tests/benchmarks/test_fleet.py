"""The benchmark of many trainers leaves nothing behind."""

import signal
import subprocess
import sys

import pytest

from tests.support.repository import REPOSITORY

# The benchmark with a stack that only says what it is asked to do.
PROGRAM = """
import subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from benchmarks.fleet import __main__ as benchmark

class Recorder:
    def __init__(self, folder, **changes):
        self.settings = SimpleNamespace(targets=Path(folder) / "targets")

    def run(self, verb):
        print(verb, flush=True)
        return subprocess.CompletedProcess(verb, 0, "", "")

benchmark.Stack = Recorder
sys.exit(benchmark.main())
"""


@pytest.mark.slow
def test_stack_is_stopped_when_the_benchmark_is_terminated() -> None:
    command = [sys.executable, "-c", PROGRAM, "--trainers", "1", "--minutes", "5"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert process.stdout.read() == "down\n"
    assert process.returncode == -signal.SIGINT
