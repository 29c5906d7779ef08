from __future__ import annotations

import os
from pathlib import Path

import pytest

from heapwatch.measure.process import kernel_kills
from heapwatch.measure.process.kernel_kills import KernelKills

PID = os.getpid()


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The counters of the control group and of the machine."""
    group, machine = tmp_path / "memory.events", tmp_path / "vmstat"
    group.write_text("low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    machine.write_text("nr_free_pages 5\noom_kill 7\n")
    monkeypatch.setattr(kernel_kills, "kill_counters", lambda pid: [group, machine] if pid == PID else [])
    return group, machine


def test_a_count_of_its_own_group_that_rose_since_the_last_update_is_the_cause(
    counters: tuple[Path, Path],
) -> None:
    kills = KernelKills()
    kills.update([PID])
    counters[1].write_text("oom_kill 8\n")
    assert not kills.has_killed(PID)
    counters[0].write_text("oom_kill 4\n")
    assert not KernelKills().has_killed(PID)  # which has never seen the process
    assert kills.has_killed(PID)
    assert not kills.has_killed(PID), "one kill explains one end"


def test_the_machine_counts_where_the_control_group_ended_with_its_process(
    counters: tuple[Path, Path],
) -> None:
    kills = KernelKills()
    kills.update([PID])
    counters[0].unlink()
    assert not kills.has_killed(PID)
    counters[1].write_text("oom_kill 8\n")
    assert kills.has_killed(PID)
