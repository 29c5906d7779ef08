"""What the demonstration says while it waits, and how it fails; tests/e2e runs it on a real stack."""

from __future__ import annotations

import io
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from heapwatch_stack import demo
from heapwatch_stack.errors import StackError
from heapwatch_stack.report import Narrator


def test_an_alert_that_stays_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    said, alert = io.StringIO(), "TrainerLimitExceeded (bodies/all, critical)"
    loop = SimpleNamespace(firing=lambda: [alert])
    monkeypatch.setattr(demo, "PATIENCE", 0)
    follow = demo.Demonstration(loop, Narrator(Console(file=said)))  # type: ignore[arg-type]
    with pytest.raises(StackError, match=r"the end of the alerts; alerts: TrainerLimitExceeded \(bodies/all"):
        follow.wait("the end of the alerts", lambda: not loop.firing())
    assert "for the end of the alerts" in said.getvalue()


def test_a_trainer_that_does_not_start_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nread line\n")
    silent.chmod(stat.S_IRWXU)
    monkeypatch.setattr(demo, "STARTS_WITHIN", 0.1)
    process = subprocess.Popen(silent, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack = SimpleNamespace(start_trainer=lambda: process)
    with pytest.raises(StackError, match="trainer did not start: no output"), demo.small_trainer(stack):  # type: ignore[arg-type]
        pass
    assert process.returncode is not None


def test_the_trainer_says_its_port_and_ends_with_its_input() -> None:
    command = [sys.executable, "-m", "heapwatch_stack.trainer"]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack = SimpleNamespace(start_trainer=lambda: process, trainer_instance=lambda port: f"here:{port}")
    with demo.small_trainer(stack) as (_, instance):  # type: ignore[arg-type]
        assert int(instance.removeprefix("here:")) > 0
    assert process.returncode == 0
