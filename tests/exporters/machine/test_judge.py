"""The verdict on a machine, over minutes and hours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.machine.groups import Groups
from heapwatch.machine.judge import OTHERS, MachineJudge
from heapwatch.machine.levels import MachineLevels
from heapwatch.machine.workers import Representative
from tests.support.process_files import ProcessFiles

MB = 2**20


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProcessFiles:
    """Three workers of a Ray job, and a learner; no process is entered."""
    monkeypatch.setenv("HEAPWATCH_WORKERS", "off")
    files = ProcessFiles(tmp_path)
    for pid in (1, 2, 3):
        files.process(pid, "VLLM::Worker_TP0")
    files.process(4, "python", "learner.py")
    return files


def watched(
    files: ProcessFiles, clock: Any, minutes: float, memory: Callable[[int, float], float]
) -> MachineJudge:
    """A judge after so many minutes, with the memory in MB of a process id at a minute."""
    levels = MachineLevels(files.path, shared_files="")
    judge = MachineJudge(Groups(proc=files.path), clock=clock, levels=levels)
    began = clock()
    while clock() < began + 60 * minutes:
        for pid in (1, 2, 3, 4):
            files.memory(pid, int(memory(pid, (clock() - began) / 60) * MB))
        clock.now += judge.step()
    return judge


def test_a_group_that_leaks_is_told_with_its_rate_and_the_time_left(
    files: ProcessFiles, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heapwatch.machine.judge.free_memory", lambda: 3000 * MB)  # of a control group
    judge = watched(files, clock, 20, lambda pid, minute: 500 + (10 * minute if pid < 4 else 0))
    found = judge.now()
    assert found.verdict == "leak"
    (leak,) = found.leaks
    assert (*leak.component, leak.reason) == ("memory", "VLLM::Worker_TP*", "growth")
    assert leak.per_minute == pytest.approx(30 * MB, rel=0.1)
    assert found.time_left is not None
    assert found.time_left.least < 6000 < found.time_left.most
    (finding,) = found.findings
    assert (finding.type, finding.items, finding.is_leak) == ("memory of VLLM::Worker_TP*", 3, True)


def test_phases_are_no_leak_and_the_first_minutes_no_verdict(files: ProcessFiles, clock: Any) -> None:
    def phases(pid: int, minute: float) -> float:
        return 500 + 100 * (minute % 3)

    early = watched(files, clock, 5, phases).now()
    assert early.verdict == "too early"
    assert "4 processes in 2 groups" in narrative(early)
    assert watched(files, clock, 40, phases).now().verdict == "healthy"


def test_worker_processes_are_told_with_the_program_that_they_work_for(
    files: ProcessFiles, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak = Finding("container", "env.log", "list", 9, 10**6, 60.0, 10.0 * MB, 1.0, is_leak=True)
    inside = Explanation("leak", 60.0, 10.0 * MB, 1.0, (leak,))
    entered = Representative(4, 1, 1, "workers of learner")
    monkeypatch.setattr("heapwatch.machine.visits.WorkerVisits.inside", lambda *_: (inside, entered))
    files.process(4, "python", "learner.py", parent=5)
    files.process(5, "python", "learner.py")
    judge = watched(files, clock, 20, lambda pid, minute: 500 + (10 * minute if pid == 4 else 0))
    (finding,) = judge.now().findings
    assert finding.type == "list in 1 of 1 workers of learner"


def test_a_leak_has_the_name_that_a_visit_has_found(
    files: ProcessFiles, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak = Finding("container", "worker.cache", "list", 9, 10**6, 60.0, 10.0 * MB, 1.0, is_leak=True)
    inside = Explanation("leak", 60.0, 10.0 * MB, 1.0, (leak,))
    entered = Representative(2, 3, 3, "VLLM::Worker_TP*")
    monkeypatch.setattr(
        "heapwatch.machine.visits.WorkerVisits.inside",
        lambda visits, group: (inside, entered) if group == entered.group else None,
    )
    judge = watched(files, clock, 20, lambda pid, minute: 500 + (10 * minute if pid < 4 else 0))
    (finding,) = judge.now().findings
    assert (finding.path, finding.is_leak) == ("worker.cache", True)
    assert finding.type == "list in 3 of 3 VLLM::Worker_TP*"
    assert finding.bytes_per_minute == pytest.approx(30 * MB, rel=0.1)


def test_processes_that_the_kernel_killed_count_for_their_group(
    files: ProcessFiles, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 4\n")
    monkeypatch.setattr("heapwatch.measure.process.kernel_kills.kill_counters", lambda pid: [counter])
    judge = watched(files, clock, 1, lambda pid, minute: 500)
    for pid in (1, 2):
        shutil.rmtree(files.folder / str(pid))
    counter.write_text("oom_kill 5\n")
    clock.now += judge.step()
    clock.now += judge.step()
    assert judge.kills == {"VLLM::Worker_TP*": 1}


def test_of_very_many_groups_the_largest_have_series(tmp_path: Path, clock: Any) -> None:
    files = ProcessFiles(tmp_path)
    for pid in range(1, 121):
        files.process(pid, "python", f"{chr(97 + pid % 26)}{chr(97 + pid // 26)}.py", anonymous=pid * MB)
    levels = MachineLevels(files.path, shared_files="")
    judge = MachineJudge(Groups(proc=files.path), clock=clock, levels=levels)
    judge.step()
    exposed = judge.exposed()
    assert len(exposed) == 101
    assert exposed[-1].name == OTHERS
    assert sum(group.private for group in exposed) == sum(range(1, 121)) * MB
    assert sum(len(group.members) for group in exposed) == 120
