"""What is kept of trainers that ended unexpectedly."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from heapwatch import lost
from heapwatch.lost import KEPT_SECONDS, Lost


def one(address: str = "127.0.0.1:7777") -> Lost:
    return Lost(address, "ppo", lost.OUT_OF_MEMORY, round(time.time(), 3))


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    assert lost.read(tmp_path / "missing") == []
    kept = [one(), one("[::1]:7778")]
    for each in kept:
        lost.write(tmp_path / "lost", each)
    assert sorted(lost.read(tmp_path / "lost"), key=lambda each: each.address) == kept


def test_the_last_life_at_an_address_counts(tmp_path: Path) -> None:
    lost.write(tmp_path, one())
    later = replace(one(), trainer="dqn")
    lost.write(tmp_path, later)
    assert lost.read(tmp_path) == [later]


def test_it_is_removed_after_a_day(tmp_path: Path) -> None:
    lost.write(tmp_path, replace(one(), at=time.time() - KEPT_SECONDS - 1))
    assert lost.read(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "age", "causes", "stays"),
    [(b"\x07", 0, ["exit status 7"], True), (b"\0", 0, [], False), (b"", 0, [], True), (b"", 120, [], False)],
)
def test_the_exit_status_decides_whether_a_program_that_ends_is_lost(
    tmp_path: Path, status: bytes, age: float, causes: list[str], stays: bool
) -> None:
    lost.write(tmp_path, replace(one(), cause="", at=time.time() - age))
    (record,) = tmp_path.iterdir()
    ending = record.rename(record.with_suffix(".ending"))
    ending.write_bytes(ending.read_bytes() + status)
    assert [each.cause for each in lost.read(tmp_path)] == causes
    assert ending.exists() == stays


@pytest.mark.parametrize(
    "content", ["", "[", "[]", "{}", '{"address": "a", "trainer": "", "cause": "", "at": "x"}']
)
def test_what_is_no_record_is_skipped(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    assert lost.read(tmp_path) == []


PROGRAM = """
import atexit, os, sys
from pathlib import Path
from heapwatch.lost import _append_exit_status
atexit.register(lambda: print(_append_exit_status(Path(sys.argv[1]))))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", b"\0"),
        ("sys.exit(7)", b"\x07"),
        ("raise SystemExit(300)", b"\x2c"),
        ("1 / 0", b"\1"),
        ("os.fork() or os._exit(3)", b"\0"),
    ],
)
def test_it_is_appended_to_the_file(tmp_path: Path, end: str, status: bytes) -> None:
    file = tmp_path / "status"
    file.write_bytes(b"before")
    command = [sys.executable, "-c", PROGRAM + end, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status[0]
    assert done.stdout == "True\n"
    assert file.read_bytes() == b"before" + status
