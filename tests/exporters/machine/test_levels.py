"""How groups of processes grow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth, MachineLevels, gpu_bytes
from heapwatch.machine.survey import Survey, survey
from heapwatch.measure.gpu import NvmlSession
from tests.support.process_files import ProcessFiles

MB = 2**20


def watched(files: ProcessFiles, memory: dict[int, list[int]], shared: int = 0) -> list[GroupGrowth]:
    """The groups after a reading of each of these levels, a second apart."""
    groups, levels = Groups(proc=files.path), MachineLevels(files.path, shared_files="")
    for second in range(20):
        for pid, (first, rate) in memory.items():
            files.memory(pid, first * MB + second * rate * MB, second * shared * MB)
        levels.read(groups.members(), float(second))
    return levels.groups()


def test_a_group_says_how_many_of_its_members_grow(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    for pid in (1, 2, 3):
        files.process(pid, "python", "rollout.py")
    files.process(4, "python", "learner.py")
    first, second = watched(files, {1: [100, 2], 2: [100, 3], 3: [100, 0], 4: [900, 0]})
    assert (first.name, [member.pid for member in first.growing]) == ("rollout", [2, 1])
    assert abs(first.per_minute - 60 * 5 * MB) < MB
    assert first.matters
    assert first.private == (300 + 19 * 5) * MB
    assert (second.name, second.growing, second.matters) == ("learner", (), False)


def test_memory_that_all_members_share_counts_once(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    for pid in (1, 2, 3):
        files.process(pid, "python", "rollout.py")
    (group,) = watched(files, {pid: [100, 0] for pid in (1, 2, 3)}, shared=1)
    assert group.per_minute == 0
    assert abs(group.shared_per_minute - 60 * MB) < MB
    assert group.shared == 19 * MB
    assert group.matters


def test_growth_that_takes_days_to_matter_does_not(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    files.process(1, "python", "train.py")
    groups, levels = Groups(proc=files.path), MachineLevels(files.path, shared_files="")
    for second in range(20):
        files.memory(1, 40_000 * MB + second * 64 * 1024)
        levels.read(groups.members(), float(second))
    (group,) = levels.groups()
    assert group.per_minute > 0
    assert not group.matters


def test_a_survey_without_growth_says_at_what_it_looked(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    files.process(1, "python", "train.py")
    looked_at = survey(Groups(proc=files.path), seconds=0.0, pause=lambda seconds: None)
    assert "None grows by an amount that matters." in looked_at.lines()[0]


def test_growth_of_a_process_that_is_just_starting_can_be_left_out(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    files.process(1, "python", "train.py")
    stat = files.folder / "1" / "stat"
    stat.write_text(stat.read_text().replace(" 100", f" {10**12}"))  # it begins now, or later
    groups, levels = Groups(proc=files.path), MachineLevels(files.path, startup_seconds=60.0, shared_files="")
    for second in range(20):
        files.memory(1, (100 + second) * MB)
        levels.read(groups.members(), float(second))
    (group,) = levels.groups()
    assert group.per_minute == 0


def test_growing_files_in_shared_memory_lead_to_those_who_may_make_them(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    files.process(11, "python", "serve.py")
    files.process(12, "python", "-c", "from multiprocessing.resource_tracker import main;main(5)", parent=11)
    files.process(13, "python", "-c", "from multiprocessing.spawn import spawn_main", parent=11)
    files.process(14, "python", "train.py")
    groups = Groups(proc=files.path)
    names = {member.group for member in groups.members() if groups.shares_memory(member.pid)}
    assert names == {"serve", "workers of serve"}
    grown = GroupGrowth("/dev/shm", (), 0, 9 * MB, 0.0, 60.0 * MB)
    members = groups.members()
    still = [GroupGrowth(name, tuple(m for m in members if m.group == name), MB, 0, 0.0)
             for name in ("serve", "workers of serve", "train")]  # fmt: skip
    looked_at = Survey(0.0, 25.0, (grown, *still), frozenset(names))
    assert [group.name for group in looked_at.growing] == ["/dev/shm"]
    assert [group.name for group in looked_at.to_enter] == ["serve", "workers of serve"]


class Lost(Exception):
    """What the driver raises."""


def library(fails: bool) -> SimpleNamespace:
    """A driver of two devices with a process on both, and one that hides its memory."""

    def processes(handle: int) -> list[SimpleNamespace]:
        if fails:
            raise Lost
        return [
            SimpleNamespace(pid=7, usedGpuMemory=100 + handle),
            SimpleNamespace(pid=8, usedGpuMemory=None),
        ]

    return SimpleNamespace(
        NVMLError=Lost,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeRunningProcesses=processes,
    )


@pytest.mark.parametrize(("fails", "held"), [(False, {7: 201, 8: 0}), (True, None)])
def test_the_memory_of_a_process_is_that_on_all_devices_and_none_of_a_lost_driver(
    fails: bool, held: dict[int, int] | None
) -> None:
    assert gpu_bytes(NvmlSession(library(fails), environment={})) == held
