"""The memory of Ray's object store: once, whoever maps it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from heapwatch.measure.process import object_store
from heapwatch.measure.process.object_store import ObjectStore
from heapwatch.measure.process.ray_job import is_ray_worker, raylets
from tests.support.process_files import ProcessFiles

RAYLET = "/venv/ray/core/src/ray/raylet/raylet\0--raylet_socket_name=/tmp/ray/raylet"


def process(proc: Path, pid: int, command: str, parent: int = 1) -> Path:
    """A process of a procfs; returns its folder."""
    ProcessFiles(proc).process(pid, *command.split("\0"), parent=parent)
    return proc / str(pid)


def test_processes_of_ray_are_known_by_their_titles_and_programs(tmp_path):
    commands = ("python\0train.py", "ray::Rollout.step", "ray::IDLE\0", RAYLET, "python\0raylet.py\0/raylet")
    for pid, command in enumerate(commands):
        process(tmp_path, pid, command)
    proc = str(tmp_path)
    assert [pid for pid in range(len(commands)) if is_ray_worker(pid, proc)] == [1, 2]
    assert raylets(proc) == [3]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of 2 GB of which 3 MB are used, as a store."""
    file = tmp_path / "plasmaAbC12"
    with file.open("wb") as opened:
        opened.write(b"x" * 3_000_000)
        opened.truncate(2_000_000_000)
    monkeypatch.setattr(object_store, "_FILE", str(tmp_path / "plasma"))
    return file


@pytest.mark.parametrize("parent", [os.getpid(), 1], ids=["its own", "another"])
def test_a_store_takes_the_memory_that_was_used(tmp_path, store, parent):
    process(tmp_path, 8, "ray::IDLE")
    (tmp_path / "8/fd/5").symlink_to(store)
    read = ObjectStore(str(tmp_path))
    read.find()
    assert read.read() is None
    raylet = process(tmp_path, 9, RAYLET, parent)
    (raylet / "fd/4").symlink_to("/dev/null")
    (raylet / "fd/5").symlink_to(store)
    read.find()
    assert read.read() == pytest.approx(3_000_000, rel=0.01)
    assert read.is_own == (parent == os.getpid())


def test_beside_an_own_store_those_of_others_do_not_count(tmp_path, store):
    read = ObjectStore(str(tmp_path))
    found = []
    for pid, parent in ((7, 1), (8, os.getpid()), (9, 1)):  # the own one may be started later
        (process(tmp_path, pid, RAYLET, parent) / "fd/5").symlink_to(store)
        read.find()
        found.append((read.read(), read.is_own))
    assert found[0] == (pytest.approx(3_000_000, rel=0.01), False)
    assert found[1:] == [(found[0][0], True)] * 2


def test_a_store_that_has_ended_takes_nothing_and_the_next_is_found(tmp_path, store):
    raylet = process(tmp_path, 9, RAYLET)
    (raylet / "fd/5").symlink_to(store)
    read = ObjectStore(str(tmp_path))
    read.find()
    (raylet / "fd/5").unlink()
    assert read.read() is None
    (raylet / "fd/6").symlink_to(store)
    read.find()
    assert read.read() == pytest.approx(3_000_000, rel=0.01)
