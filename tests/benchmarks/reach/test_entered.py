"""The benchmark of entering tells a program that is harmed from one that goes on."""

import sys

import pytest

from benchmarks.reach import entered as benchmark
from heapwatch.entering.ptrace import IS_SUPPORTED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]


def test_a_busy_program_is_entered_until_the_time_is_up() -> None:
    done, harm = benchmark.rounds(sys.executable, "forked_workers", 1.0)
    assert done >= 1
    assert harm == ""


def test_a_program_that_ends_counts_as_harmed(monkeypatch: pytest.MonkeyPatch) -> None:
    def harms(pid: int) -> str:
        benchmark.psutil.Process(pid).terminate()
        return ""

    monkeypatch.setattr(benchmark, "serve", harms)
    monkeypatch.setattr(benchmark, "leave", lambda pid: benchmark.time.sleep(0.3))
    assert benchmark.rounds(sys.executable, "steady", 1.0) == (1, "ended: ")
