"""What the watchdog says about services that are unhealthy."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from heapwatch.runtime.own_files import make_private
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


def test_a_supervisor_that_died_while_the_watchdog_started_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog's parent is then another process, here that of the test."""
    started = []
    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path))
    monkeypatch.setattr(watchdog, "SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(watchdog, "_sweep", lambda *_: pytest.fail("it watches another process"))
    monkeypatch.setattr(watchdog.Supervisor, "start", lambda self: started.append(self))
    for folder in ("logs", "run"):
        make_private(tmp_path / folder)
    assert watchdog.main() == 0
    assert len(started) == 1
    assert "supervisord died" in (tmp_path / "logs" / "watchdog.log").read_text()


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
