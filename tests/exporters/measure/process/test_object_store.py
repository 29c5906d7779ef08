"""The memory of Ray's object store: once, whoever maps it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from heapwatch.measure.process import object_store
from heapwatch.measure.process.object_store import ObjectStore
from heapwatch.measure.process.private_memory import private_bytes

STATUS = "Name:\tany\nPPid:\t{}\nRssAnon:\t   1000 kB\nRssFile:\t 500 kB\nRssShmem:\t    4000 kB\n"
RAYLET = "/venv/ray/core/src/ray/raylet/raylet\0--raylet_socket_name=/tmp/ray/raylet\0"


def process(proc: Path, pid: int, command: str, parent: int = 1) -> Path:
    """A process of a procfs; returns its folder."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "status").write_text(STATUS.format(parent))
    (folder / "cmdline").write_text(command)
    return folder


@pytest.mark.parametrize(
    ("command", "kilobytes"),
    [
        ("python\0train.py\0", 5000),
        ("ray::Rollout.step", 1000),
        ("ray::IDLE\0\0", 1000),
        (RAYLET, 1000),
        ("python\0raylet.py\0/raylet\0", 5000),
    ],
)
def test_pages_of_the_store_are_not_private_to_each_that_maps_them(tmp_path, command, kilobytes):
    process(tmp_path, 7, command)
    assert private_bytes(7, str(tmp_path)) == 1024 * kilobytes


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of 2 GB of which 3 MB are used, as a store."""
    file = tmp_path / "plasmaAbC12"
    with file.open("wb") as opened:
        opened.write(b"x" * 3_000_000)
        opened.truncate(2_000_000_000)
    monkeypatch.setattr(object_store, "_FILE", str(tmp_path / "plasma"))
    return file


@pytest.mark.parametrize("parent", [os.getpid(), 1])
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
