"""`heapwatch top` without a name: the groups of the machine."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

import heapwatch
from heapwatch.cli import top, top_machine
from heapwatch.cli.followed import Ended
from heapwatch.cli.top_machine import NOT_ENTERED, MachineSource, Row, printed
from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth
from heapwatch.measure.process.ended import Ending
from tests.support.entered_programs import LEAKING, program

ROLLOUT = Row("Rollout of Ray job 01", 3, 2, 10**9, 10**6, 0, 75e6, NOT_ENTERED, 4711)
LEARNER = Row("learner", 1, 0, 10**8, 0, 2 * 10**9, 0.0, "leak", 4712, "http://127.0.0.1:7777")
SHELL = Row("bash", 1, 0, 10**6, 0, 0, 0.0, "not Python", None)


@pytest.fixture
def this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has this process alone, which the command itself is otherwise left out of."""
    monkeypatch.setattr("heapwatch.machine.groups.pids", lambda proc: [os.getpid()])
    monkeypatch.setattr(Groups, "_is_watched", lambda groups, pid: True)


def test_a_watched_process_has_its_verdict_and_the_others_are_not_entered_yet(
    this_process: None, run: Any
) -> None:
    row, *_ = [one for one in MachineSource().read() if one.processes]
    assert (row.processes, row.verdict, row.url) == (1, NOT_ENTERED, None)
    with heapwatch.start("swimmer", port=0) as watch:
        row, *_ = [one for one in MachineSource().read_for(0.0) if one.processes]
        assert row.verdict == "too early"
        assert watch.server is not None
        assert f"{row.url}/" == watch.server.url


def test_the_groups_are_printed_and_told_as_json(tmp_path: Path, run: Any) -> None:
    with program(LEAKING, tmp_path):
        code, text, _ = run("top", "--once")
        assert code == 0
        assert "GROUP" in text.splitlines()[0]
        assert any(line.startswith("train ") and NOT_ENTERED in line for line in text.splitlines())
        code, text, _ = run("top", "--json")
        assert (code, json.loads(text)["trainers"]) == (0, [])
        assert "train" in [group["group"] for group in json.loads(text)["groups"]]
    many = printed([SHELL] * 40)
    assert many[-1] == "and 10 more groups"


def test_enter_chooses_a_group_that_can_be_looked_into() -> None:
    top_screen = pytest.importorskip("heapwatch.cli.top_screen", reason="textual is not installed")
    seen: list[str] = []

    def driven(app: Any) -> Row | None:
        async def press() -> None:
            async with app.run_test(size=(120, 20)) as pilot:
                await app.workers.wait_for_complete()
                await pilot.pause()
                seen.append("\n".join(strip.text for strip in app.screen._compositor.render_strips()))
                for key in ("enter", "down", "enter"):
                    await pilot.press(key)
                    await pilot.pause()

        asyncio.run(asyncio.wait_for(press(), 60))
        return cast("Row | None", app.return_value)

    assert driven(top_screen.MachineScreen(lambda: [SHELL, ROLLOUT, LEARNER], 3600.0)) == ROLLOUT
    assert "2 of 3" in seen[0]
    assert "+75 MB" in seen[0]


@pytest.mark.parametrize("code", [0, 4])
def test_the_end_of_a_process_that_was_looked_into_is_told(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end = Ended("process 4711 (train) was killed by SIGSEGV", Ending(signal=11) if code else Ending(code=0))
    assert end.exit_code == code
    screen = pytest.importorskip("heapwatch.cli.top_screen", reason="textual is not installed").MachineScreen
    monkeypatch.setattr(screen, "run", Mock(side_effect=[ROLLOUT, None]))
    monkeypatch.setattr(top, "_shown", Mock(return_value=([], end)))
    assert top._machine_on_screen(Mock(all_users=False, interval=2.0)) == code
    assert "process 4711 (train) was killed by SIGSEGV" in capsys.readouterr().err


def test_files_in_shared_memory_have_no_processes_and_no_verdict() -> None:
    row = top_machine._row(GroupGrowth("/dev/shm", (), 0, 10**8, 0.0, 6e7), {})
    assert row.cells() == ("/dev/shm", "", "", "100 MB", "", "+60 MB", "", "")
