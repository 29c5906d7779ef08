"""What the demonstration says while it waits, and how it fails; tests/e2e runs it on a real stack."""

from __future__ import annotations

import io
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from heapwatch_stack import demo
from heapwatch_stack.errors import StackError
from heapwatch_stack.report import Narrator

CAUSED = {
    "alertname": "TrainerLimitExceeded",
    "severity": "critical",
    "resource": "bodies",
    "component": "all",
}


class Loop:
    """What the services say: the alerts end after some looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def levels(self) -> demo.Levels:
        return demo.Levels(186, 6, 4e8)

    def alerts(self) -> list[dict[str, str]]:
        self.looks -= 1
        return [CAUSED] if self.looks >= 0 else []


class Clock:
    """Stands still but for sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def demonstration(looks: int, said: io.StringIO) -> Any:
    return demo._Demonstration(None, Loop(looks), Narrator(Console(file=said)))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "time", Clock())


def test_a_long_wait_says_what_it_waits_for_and_not_often() -> None:
    said = io.StringIO()
    demonstration(120, said)._see_silence()
    lines = [line for line in said.getvalue().splitlines() if "waits" in line]
    assert 1 < len(lines) < 6
    assert all("for the end of the alerts" in line and "186 bodies" in line for line in lines)


def test_an_alert_that_stays_is_no_success() -> None:
    with pytest.raises(StackError, match=r"alerts: TrainerLimitExceeded \(bodies/all, critical\)$"):
        demonstration(10**6, io.StringIO())._see_silence()


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


def test_the_trainer_says_its_port_and_ends_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "heapwatch_stack.trainer"]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack = SimpleNamespace(start_trainer=lambda: process, trainer_instance=lambda port: f"here:{port}")
    with demo.small_trainer(stack) as (_, instance):  # type: ignore[arg-type]
        assert int(instance.removeprefix("here:")) > 0
    assert process.returncode == 0
