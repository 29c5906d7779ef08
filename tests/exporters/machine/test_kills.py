from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch.machine import kills
from heapwatch.machine.groups import Member
from heapwatch.machine.kills import Kills

TRAINERS = [Member(pid, 0.0, "train", is_python=True) for pid in (1, 2, 3)]


def test_as_many_of_those_that_ended_count_as_the_kernel_has_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 4\n")
    monkeypatch.setattr(kills, "kill_counters", lambda pid: [tmp_path / "none", counter])
    found = Kills()
    found.update(TRAINERS)
    found.update(TRAINERS[1:])
    assert found.counts == {}
    counter.write_text("oom_kill 5\n")
    found.update([])
    assert found.counts == {"train": 1}
    found.update([])
    assert found.counts == {"train": 1}
