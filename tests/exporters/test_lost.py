"""What is kept of trainers that ended unexpectedly."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from heapwatch import lost
from heapwatch.lost import Lost


def one(address: str = "127.0.0.1:7777") -> Lost:
    return Lost(address, "ppo", lost.OUT_OF_MEMORY, round(time.time(), 3))


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    assert lost.read(tmp_path / "missing") == []
    kept = [one(), one("[::1]:7778")]
    for each in kept:
        lost.write(tmp_path / "lost", each)
    assert sorted(lost.read(tmp_path / "lost"), key=lambda each: each.address) == kept


@pytest.mark.parametrize(("cause", "hours"), [(lost.OUT_OF_MEMORY, 24), (lost.TERMINATED, 0.25)])
def test_it_is_removed_after_a_day_or_soon_where_somebody_ended_it(
    tmp_path: Path, cause: str, hours: float
) -> None:
    for late, left in ((-60, 1), (60, 0)):
        lost.write(tmp_path, replace(one(), cause=cause, at=time.time() - 3600 * hours - late))
        assert len(lost.read(tmp_path)) == left
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", ["", "[", "[]", "{}", '{"address": "a", "trainer": "", "cause": "", "at": "x"}']
)
def test_what_is_no_record_is_skipped(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    assert lost.read(tmp_path) == []
