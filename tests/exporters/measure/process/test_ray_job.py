"""Which processes work for the job of a driver of Ray."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heapwatch.measure.process.process_tree import descendants
from heapwatch.measure.process.ray_job import driven_job, worker_job
from tests.support.process_files import ProcessFiles

DRIVER, RAYLET, SESSION = 10, 20, "session_2026-11-28_02-09-40_719347_4531"


@pytest.fixture
def files(tmp_path: Path) -> ProcessFiles:
    """A driver of job 01000000, a raylet of its session with four workers, and another raylet."""
    files = ProcessFiles(tmp_path / "proc")
    logs = tmp_path / "ray" / SESSION / "logs"
    logs.mkdir(parents=True)
    files.process(DRIVER, "python", "train.py")
    files.opens(DRIVER, 15, logs / f"python-core-driver-01000000{48 * 'f'}_{DRIVER}.log")
    files.process(RAYLET, "/ray/raylet", f"--session-name={SESSION}", name="raylet", program="/ray/raylet")
    files.process(30, "/ray/raylet", "--session-name=session_other", name="raylet", program="/ray/raylet")
    outputs = {
        21: ("01000000", ":job_id:01000000\n:actor_name:Rollout\n"),
        22: ("ffffffff", ":job_id:01000000\n"),
        23: ("02000000", ":job_id:02000000\n"),
        24: ("ffffffff", ""),
    }
    for pid, (job, text) in outputs.items():
        output = logs / f"worker-{pid:056x}-{job}-{pid}.out"
        output.write_text(text)
        files.process(pid, "ray::IDLE", parent=RAYLET)
        files.opens(pid, 1, output)
    files.process(25, "python", "tool.py", parent=21)
    return files


def test_the_workers_of_its_job_count_as_children_of_a_driver(files: ProcessFiles) -> None:
    assert sorted(descendants(DRIVER, proc=files.path)) == [21, 22, 25]


def test_a_process_that_drives_no_job_has_only_its_children(files: ProcessFiles) -> None:
    assert descendants(25, proc=files.path) == []
    assert driven_job(25, files.path) is None
    assert driven_job(os.getpid()) is None


def test_a_worker_knows_its_actor_and_none_without_a_job(files: ProcessFiles) -> None:
    assert worker_job(21, files.path) == (SESSION, "01000000", "Rollout")
    assert worker_job(22, files.path) == (SESSION, "01000000", "")
    assert worker_job(24, files.path) is None
    assert worker_job(DRIVER, files.path) is None


def test_an_output_that_is_no_file_is_not_waited_for(files: ProcessFiles, tmp_path: Path) -> None:
    pipe = tmp_path / "ray" / SESSION / "logs" / "worker-0a-ffffffff-26.out"
    os.mkfifo(pipe)
    files.process(26, "ray::IDLE", parent=RAYLET)
    files.opens(26, 1, pipe)
    assert worker_job(26, files.path) is None
