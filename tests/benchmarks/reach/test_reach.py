"""The benchmark of entering tells a harmed program from one that goes on; a heap says what is read of it."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.reach import entered as benchmark
from heapwatch.entering.ptrace import IS_SUPPORTED

pytestmark = pytest.mark.slow
enters = pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64")

BRIEFLY = "import heap; heap.PATIENCE = 0.1; heap.main(100)"


@enters
def test_a_busy_program_is_entered_until_the_time_is_up() -> None:
    done, harm = benchmark.rounds(sys.executable, "forked_workers", 1.0)
    assert done >= 1
    assert harm == ""


@enters
def test_a_program_that_ends_counts_as_harmed(monkeypatch: pytest.MonkeyPatch) -> None:
    def harms(pid: int) -> str:
        benchmark.psutil.Process(pid).terminate()
        return ""

    monkeypatch.setattr(benchmark, "serve", harms)
    monkeypatch.setattr(benchmark, "leave", lambda pid: benchmark.time.sleep(0.3))
    assert benchmark.rounds(sys.executable, "steady", 1.0) == (1, "ended: ")


def test_a_heap_says_how_long_lists_and_collections_stopped_it(tmp_path):
    environment = {**os.environ, "HEAPWATCH_STATE": str(tmp_path)}
    said = subprocess.check_output(
        [sys.executable, "-c", BRIEFLY], cwd=benchmark.PROGRAMS, env=environment, timeout=60
    )
    assert json.loads(said).keys() == {"is_named", "named", "stall", "collection"}
