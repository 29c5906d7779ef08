"""How groups of processes grow."""

from __future__ import annotations

from pathlib import Path

from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth, MachineLevels
from heapwatch.machine.survey import survey
from tests.support.process_files import ProcessFiles

MB = 2**20


def watched(files: ProcessFiles, memory: dict[int, list[int]], shared: int = 0) -> list[GroupGrowth]:
    """The groups after a reading of each of these levels, a second apart."""
    groups, levels = Groups(proc=files.path), MachineLevels(files.path)
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
    assert abs(group.per_minute - 60 * MB) < MB
    assert group.shared == 19 * MB
    assert group.matters


def test_growth_that_takes_days_to_matter_does_not(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    files.process(1, "python", "train.py")
    groups, levels = Groups(proc=files.path), MachineLevels(files.path)
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
    groups, levels = Groups(proc=files.path), MachineLevels(files.path, startup_seconds=60.0)
    for second in range(20):
        files.memory(1, (100 + second) * MB)
        levels.read(groups.members(), float(second))
    (group,) = levels.groups()
    assert group.per_minute == 0
