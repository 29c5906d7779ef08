"""Segments of shared memory: whose they are, how they are counted, and which line makes them."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

from heapwatch.explain import written_files
from heapwatch.explain.describe import Describer
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.remedies import REMOVE
from heapwatch.explain.shared_files import FILES, SharedFiles
from heapwatch.explain.written_files import line_with, prefixes
from heapwatch.judge.level import NO_GROWTH
from tests.support.walking import inventory_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 13), reason="segments are files on Linux"
)

SIZE = 1_000_000
PATH = "/dev/shm/psm_*"


@pytest.fixture
def made() -> Iterator[Callable[[], str]]:
    names: list[str] = []

    def make() -> str:
        block = SharedMemory(create=True, size=SIZE)
        assert block.buf is not None
        block.buf[:] = bytes(SIZE)
        names.append(block.name)
        block.close()
        return block.name

    yield make
    for name in names:
        with suppress(FileNotFoundError):
            SharedMemory(name).unlink()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedFiles]:
    # Other tests may have left a wrapped one.
    monkeypatch.setattr(resource_tracker, "register", resource_tracker._resource_tracker.register)
    found = SharedFiles()
    found.read(0.0)
    yield found
    found.close()


def test_segments_that_nobody_maps_any_more_are_counted_until_they_are_unlinked(files, made):
    names = [made() for _ in range(3)]
    files.read(1.0)
    known = files.known[PATH]
    assert known.items.last == 3
    assert files.bytes == known.held.last == pytest.approx(3 * SIZE, rel=0.01)
    SharedMemory(names[0]).unlink()
    files.read(2.0)
    assert known.items.last == 2


def test_the_line_that_makes_them_is_known(files, made):
    made()
    (site,) = files.sites[PATH]
    assert (site.file, site.function.rpartition(".")[2]) == (__file__, "make")
    files.read(1.0)
    described = Describer(inventory_of([])).describe_segments(files.known[PATH], NO_GROWTH, {site})
    assert (described.site, described.emptied) == (site, "whole"), "this module calls `unlink`"


def test_segments_of_before_and_of_other_programs_do_not_count(made):
    name = made()
    time.sleep(0.1)
    found = SharedFiles()
    found.add([name])
    other = Path(f"/dev/shm/psm_other{os.getpid()}")
    try:
        other.write_bytes(bytes(SIZE))
        found.read(1.0)
        assert found.bytes == 0
    finally:
        other.unlink()
        found.close()


def test_the_call_to_the_tracker_is_as_before_at_the_end(files):
    assert getattr(resource_tracker.register, "by", None) is files
    files.close()
    assert getattr(resource_tracker.register, "by", None) is None


def test_reading_a_file_that_was_there_is_no_growth_and_a_new_segment_is():
    file = Path(f"/dev/shm/dataset_{os.getpid()}")
    file.write_bytes(bytes(40 * SIZE))
    try:
        memory = ProcessMemory()
        memory.read_parts()
        before = memory.private.last or 0.0
        descriptor = os.open(file, os.O_RDWR)
        with mmap.mmap(descriptor, 0) as pages:
            assert sum(pages[::4096]) == 0
            memory.make_due()
            memory.read_parts()
            assert (memory.private.last or 0.0) - before < 10 * SIZE
            block = SharedMemory(create=True, size=40 * SIZE)
            block.buf[:] = bytes(40 * SIZE)
            for _ in range(2):
                memory.make_due()
                memory.read_parts()
            assert (memory.private.last or 0.0) - before > 38 * SIZE
            block.close()
            block.unlink()
        os.close(descriptor)
        memory.close()
    finally:
        file.unlink()


FOLDER = f"/dev/shm/heapwatch_test_{os.getpid()}"


def save_chunk(folder: str, number: int) -> None:
    Path(f"{folder}/chunk_{number}.bin").write_bytes(bytes(SIZE))


def test_files_count_whose_names_begin_as_the_program_says(files, monkeypatch):
    before = Path(f"{FOLDER}/chunk_0.bin")
    before.parent.mkdir()
    try:
        before.write_bytes(bytes(SIZE))
        time.sleep(0.1)
        found = SharedFiles()
        monkeypatch.setattr(sys, "argv", ["train.py", f"--folder={FOLDER}"])
        found.find_prefixes()
        for number in range(1, 4):
            save_chunk(FOLDER, number)
        found.read(1.0)
        known = found.known[f"{re.sub('[0-9]+', '*', FOLDER)}/chunk_*"]
        assert (known.items.last, known.type_name) == (3, FILES)
        assert found.bytes == pytest.approx(3 * SIZE, rel=0.01)
        Path(f"{FOLDER}/chunk_1.bin").unlink()
        found.read(2.0)
        assert known.items.last == 2
        described = Describer(inventory_of([])).describe_segments(known, NO_GROWTH, set())
        assert described.remedy == REMOVE
    finally:
        shutil.rmtree(FOLDER)


def save_by_name(number: int) -> None:
    Path(f"/dev/shm/replay_of_this_test_{number}").touch()


def test_the_line_of_the_code_that_names_files_is_that_which_makes_them(monkeypatch):
    monkeypatch.setattr(written_files, "user_code", lambda: [save_by_name.__code__])
    (name, constant) = next(item for item in prefixes().items() if item[0].startswith("replay"))
    assert name == "replay_of_this_test_"
    assert constant is not None
    assert line_with(constant).line == save_by_name.__code__.co_firstlineno + 1


def joined(folder: Path, number: int) -> Path:
    return folder / f"chunk_{number}" / "data"


def test_of_a_folder_alone_the_files_count_that_begin_like_a_name_in_the_code(monkeypatch):
    monkeypatch.setattr(written_files, "user_code", lambda: [joined.__code__])
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(sys, "argv", ["train.py", "--folder", "/home/user"])
    assert "chunk_" not in prefixes()
    monkeypatch.setattr(sys, "argv", ["train.py", "--folder", "/dev/shm"])
    assert "chunk_" in prefixes()
    assert "data" not in prefixes(), "files of other programs may begin so, too"
