"""What `up` looks at first, and what it ends with."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heapwatch.cli.main import main
from heapwatch_stack import native
from heapwatch_stack.cli import how_to_go_on
from heapwatch_stack.settings import Settings
from tests.support.ports import free_ports
from tests.support.repository import REPOSITORY


def test_a_port_that_is_taken_ends_up_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unpack(*_: object) -> None:
        raise AssertionError("programs were looked for")

    monkeypatch.setattr(native.binaries, "find", unpack)
    monkeypatch.delenv("HEAPWATCH_CHECKOUT", raising=False)
    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))
    names = ("PROMETHEUS", "ALERTMANAGER", "RECEIVER", "DASHBOARDS")
    for name, port in zip(names, free_ports(4), strict=True):
        monkeypatch.setenv(f"HEAPWATCH_{name}_PORT", str(port))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("HEAPWATCH_DASHBOARDS_PORT", str(port))
        assert main(["up", "--mode", "native"]) == 1
    assert f"dashboards cannot listen at 127.0.0.1:{port} (Address already in use)" in capsys.readouterr().err
    assert not (tmp_path / "state" / "etc").exists()


def test_logs_of_which_only_the_first_lines_are_read_end_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "receiver.log").write_text("a line\n" * 100_000)
    command = f"{sys.executable} -m heapwatch logs --mode native --lines 100000 | head -n 1"
    environment = {**os.environ, "HEAPWATCH_STATE": str(tmp_path)}
    done = subprocess.run(command, shell=True, env=environment, text=True, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == ("a line\n", "")


def test_a_clone_continues_with_make_and_an_installation_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    user = {"XDG_STATE_HOME": str(tmp_path)}
    installed = how_to_go_on(Settings.from_environment(user))
    assert "heapwatch status | logs | demo | down" in installed
    assert "joins this stack" not in installed
    other = str(tmp_path / "my state")
    environment = {**user, "HEAPWATCH_STATE": other, "HEAPWATCH_CHECKOUT": str(REPOSITORY)}
    clone = how_to_go_on(Settings.from_environment(environment))
    assert "make status | logs | demo | down" in clone
    assert f"HEAPWATCH_STATE='{other}'" in clone
