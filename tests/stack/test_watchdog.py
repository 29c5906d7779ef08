"""What the watchdog says about services that are unhealthy, and which targets it removes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heapwatch.discovery import TargetFile
from heapwatch.measure.process.process_tree import KernelKills
from heapwatch_stack import health, watchdog
from heapwatch_stack.settings import Endpoint, Settings
from heapwatch_viewer.unhealthy_services import UNHEALTHY


def test_a_service_that_is_unhealthy_for_long_is_reported_once_and_so_is_its_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = iter(["not answering"] * 2 + ["healthy"] + ["not answering"] * 9 + ["healthy"] * 2)
    monkeypatch.setattr(watchdog, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(watchdog, "supervised", lambda *_: next(states))
    watch = watchdog.Watch(Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)}))
    monkeypatch.setattr(watch._supervisor, "processes", lambda: {"alertmanager": {}})
    (tmp_path / UNHEALTHY).parent.mkdir()
    (tmp_path / UNHEALTHY).write_text("left by an earlier watchdog\n")
    shown = []
    for _ in range(14):
        watch.check()
        shown.append((tmp_path / UNHEALTHY).read_text())
    # three checks in a row, of which the first three are not; then nine
    assert shown == [""] * 5 + ["alertmanager: not answering\n"] * 7 + [""] * 2
    assert capsys.readouterr().out.splitlines() == [
        "alertmanager: not answering. Alerts may be lost: heapwatch status",
        "alertmanager is healthy again",
    ]


TRAINER = """
import pathlib, sys
from heapwatch.discovery import TargetFile
TargetFile(pathlib.Path(sys.argv[1]), "127.0.0.1", 7777).write()
"""


def test_the_target_of_a_dead_trainer_is_removed_and_that_of_a_live_one_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([sys.executable, "-c", TRAINER, tmp_path], check=True)
    (dead,) = tmp_path.glob("*.json")
    live = TargetFile(tmp_path, "127.0.0.1", 7778)
    live.write()
    watchdog._sweep(tmp_path, KernelKills())
    assert not dead.exists()
    assert live.path.exists()
    assert f"{dead.stem} has ended without removing its target" in capsys.readouterr().out
    live.remove()


def test_a_supervisor_that_ends_is_no_error(tmp_path: Path) -> None:
    watchdog.Watch(Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)})).check()


@pytest.mark.parametrize("ours", [True, False])
def test_what_answers_in_place_of_a_service_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    monkeypatch.setattr(health, "condition", lambda *_: health.HEALTHY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint("receiver", server.getsockname()[1], "X", "/healthz")
        info = {"pid": os.getpid() if ours else os.getppid(), "statename": "RUNNING"}
        monkeypatch.setattr("psutil.Process.children", lambda *_, **__: [])
        settings = Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)})
        assert health.supervised(settings, endpoint, info) == (health.HEALTHY if ours else health.TAKEN)
