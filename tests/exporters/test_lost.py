"""What is kept of trainers that ended unexpectedly."""

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


def test_it_is_removed_after_a_day(tmp_path: Path) -> None:
    lost.write(tmp_path, replace(one(), at=time.time() - KEPT_SECONDS - 1))
    assert lost.read(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", ["", "[", "[]", "{}", '{"address": "a", "trainer": "", "cause": "", "at": "x"}']
)
def test_what_is_no_record_is_skipped(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    assert lost.read(tmp_path) == []
