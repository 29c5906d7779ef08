"""Which processes are equals, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch.machine.groups import Groups
from tests.support.process_files import ProcessFiles

SPAWNED = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)")
FORK_SERVER = ("python", "-c", "from multiprocessing.forkserver import main; main(4)")


@pytest.fixture
def files(tmp_path: Path) -> ProcessFiles:
    return ProcessFiles(tmp_path)


def named(files: ProcessFiles) -> dict[int, str]:
    return {member.pid: member.group for member in Groups(proc=files.path).members()}


def test_programs_are_called_after_their_script_and_never_after_their_arguments(files: ProcessFiles) -> None:
    files.process(10, "python", "-u", "/home/me/train.py", "--token", "secret")
    files.process(11, "python", "-m", "torch.distributed.run", "train.py")
    files.process(12, "raylet", "--session", name="raylet", program="/ray/raylet")
    files.process(13, "python", "-c", "print(1)")
    assert named(files) == {10: "train", 11: "torch.distributed.run", 12: "raylet", 13: "python3.11"}


def test_a_program_whose_file_is_gone_or_in_memory_has_its_name(files: ProcessFiles) -> None:
    files.process(14, "serve", name="serve", program="/opt/serve (deleted)")
    files.process(15, "agent", name="agent", program="/memfd:sealed-91173221a7ea (deleted)")
    files.process(16, "python", "train.py", program="/usr/bin/python3.11 (deleted)")
    assert named(files) == {14: "serve", 15: "agent", 16: "train"}


def test_ranks_of_a_launcher_are_one_group(files: ProcessFiles) -> None:
    for rank in range(2):
        files.process(20 + rank, "python", "train.py", environment=f"A=1\0RANK={rank}\0WORLD_SIZE=2\0")
    files.process(22, "python", "train.py", environment="WORLD_SIZE=1\0")
    assert named(files) == {20: "ranks of train", 21: "ranks of train", 22: "train"}


def test_workers_are_called_after_the_program_that_started_them(files: ProcessFiles) -> None:
    files.process(30, "python", "train.py")
    files.process(31, "python", "train.py", parent=30)
    files.process(32, "python", "train.py", parent=31)
    files.process(33, "python", "train.py", parent=30, name="pt_data_worker")
    files.process(34, *SPAWNED, parent=30)
    files.process(35, *FORK_SERVER, parent=30)
    files.process(36, *FORK_SERVER, parent=35)
    files.process(37, "python", "-c", "from multiprocessing.resource_tracker import main", parent=30)
    workers = "workers of train"
    assert named(files) == {30: "train", 31: workers, 32: workers, 33: f"data loader {workers}", 34: workers,
                            36: workers}  # fmt: skip


def test_titles_that_differ_by_a_number_are_one_group(files: ProcessFiles) -> None:
    files.process(40, "VLLM::Worker_TP0")
    files.process(41, "VLLM::Worker_TP1")
    files.process(42, "t" * 10_000)
    files.process(43, "/opt/app/bin/serve --port 80")
    groups = named(files)
    assert groups[40] == groups[41] == "VLLM::Worker_TP*"
    assert groups[42] == 64 * "t"
    assert groups[43] == "serve"


def test_kernel_threads_and_processes_that_have_ended_are_left_out(files: ProcessFiles) -> None:
    files.process(2, parent=0, name="kthreadd")
    files.process(50, "python", "train.py", state="Z")
    (files.folder / "51").mkdir()
    assert named(files) == {}


def test_an_idle_worker_of_ray_gets_its_group_with_its_job(files: ProcessFiles) -> None:
    logs = files.folder / "session_1" / "logs"
    logs.mkdir(parents=True)
    output = logs / "worker-0af1-ffffffff-60.out"
    output.write_text("")
    files.process(60, "ray::IDLE")
    files.opens(60, 1, output)
    groups = Groups(proc=files.path)
    assert [member.group for member in groups.members()] == ["ray::IDLE"]
    output.write_text(":job_id:02000000\n:actor_name:Rollout\n")
    files.process(60, "ray::Rollout.sample")
    for _ in range(2):
        assert [member.group for member in groups.members()] == ["Rollout of Ray job 02000000"]
    output.write_text(":job_id:02000000\n")
    assert [member.group for member in Groups(proc=files.path).members()] == ["tasks of Ray job 02000000"]


def test_a_process_id_that_is_used_again_is_another_process(files: ProcessFiles) -> None:
    files.process(70, "python", "first.py")
    groups = Groups(proc=files.path)
    assert [member.group for member in groups.members()] == ["first"]
    files.process(70, "python", "second.py")
    stat = files.folder / "70" / "stat"
    stat.write_text(stat.read_text().replace(" 100", " 200"))
    assert [member.group for member in groups.members()] == ["second"]
    assert groups.members([]) == []
