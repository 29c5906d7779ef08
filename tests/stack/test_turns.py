"""Files that one process has at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from heapwatch_stack.errors import StackError
from heapwatch_stack.turns import take_turn


def test_the_next_waits_for_its_turn_and_not_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "turn.lock"
    with path.open("w") as first, path.open("w") as second:
        take_turn(first, path)
        with pytest.raises(StackError, match=r"another process has held .*turn\.lock for 0 s"):
            take_turn(second, path, 0.2)
        threading.Timer(0.3, first.close).start()
        take_turn(second, path, 60)
