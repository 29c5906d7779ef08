"""The memory of Ray's object store: once, whoever maps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heapwatch.measure.process import object_store
from heapwatch.measure.process.object_store import ObjectStore
from heapwatch.measure.process.process_tree import private_bytes

STATUS = "Name:\tany\nRssAnon:\t   1000 kB\nRssFile:\t 500 kB\nRssShmem:\t    4000 kB\n"
RAYLET = "/venv/ray/core/src/ray/raylet/raylet\0--raylet_socket_name=/tmp/ray/raylet\0"


def process(proc: Path, pid: int, command: str) -> Path:
    """A process of a procfs; returns its folder."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "status").write_text(STATUS)
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


def test_the_store_of_an_own_raylet_takes_the_memory_that_was_used(tmp_path, store):
    process(tmp_path, 8, "ray::IDLE")
    (tmp_path / "8/fd/5").symlink_to(store)
    raylet = process(tmp_path, 9, RAYLET)
    (raylet / "fd/4").symlink_to("/dev/null")
    (raylet / "fd/5").symlink_to(store)
    read = ObjectStore(str(tmp_path))
    assert read.read() is None
    read.find([8])
    assert read.read() is None
    read.find([8, 9])
    assert read.read() == pytest.approx(3_000_000, rel=0.01)


def test_a_store_that_has_ended_takes_nothing_and_the_next_is_found(tmp_path, store):
    raylet = process(tmp_path, 9, RAYLET)
    (raylet / "fd/5").symlink_to(store)
    read = ObjectStore(str(tmp_path))
    read.find([9])
    (raylet / "fd/5").unlink()
    assert read.read() is None
    (raylet / "fd/6").symlink_to(store)
    read.find([9])
    assert read.read() == pytest.approx(3_000_000, rel=0.01)
