"""Growth without any tool, and what is said where it cannot be measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.zoo.running import Outcome
from benchmarks.zoo.tools import plain


def looked_at(*seconds: float, ended: float = 120.0) -> Callable[..., Outcome]:
    def run(*_arguments: object, look: Callable[[int, float], None], **_options: Any) -> Outcome:
        for second in seconds:
            look(os.getpid(), second)
        return Outcome("", "Killed", None, ended)

    return run


def test_growth_is_measured_from_the_first_late_look_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = iter([5e6, 10e6, 12e6, 14e6])
    monkeypatch.setattr(plain, "_resident", lambda _pid: next(levels))
    monkeypatch.setattr(plain, "run", looked_at(10, 50, 80, 110))
    assert plain.growth_per_minute(tmp_path / "train.py", tmp_path, 120) == pytest.approx(4e6)


def test_a_script_that_ends_early_has_no_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", looked_at(10, 50, 80, ended=90))
    with pytest.raises(RuntimeError, match="ended after 90 s: Killed"):
        plain.growth_per_minute(tmp_path / "train.py", tmp_path, 120)


def test_a_machine_that_stood_still_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "run", looked_at(10, 20, 110))
    with pytest.raises(RuntimeError, match="looked at 1 times after 40% of 120 s"):
        plain.growth_per_minute(tmp_path / "train.py", tmp_path, 120)
