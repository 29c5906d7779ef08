"""The command line as a whole: what it has, what it says without an extra, what scripts read."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import heapwatch.lifecycle
from heapwatch.cli.main import main
from tests.ports import free_ports

VERBS = (
    "up", "down", "status", "logs", "restart", "demo", "clean", "tools", "ps", "monitor", "report", "attach",
    "doctor", "rules", "dashboards", "receiver", "viewer", "completion", "run",
)  # fmt: skip


def test_one_command_has_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for verb in VERBS:
        assert re.search(rf"^    {verb}\b", told, re.MULTILINE), verb


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("heapwatch ")


@pytest.mark.parametrize("command", ["report", "attach"])
def test_an_unknown_option_is_answered_with_the_usage_of_its_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "1", "--bogus"])
    assert ended.value.code == 64
    told = capsys.readouterr().err
    assert told.startswith(f"usage: heapwatch {command} ")
    assert told.endswith(f"heapwatch {command}: error: unrecognized arguments: --bogus\n")


def test_a_port_in_the_environment_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEAPWATCH_TRAINER_PORT", "http")
    assert main(["attach", "--outside", str(os.getpid())]) == 1
    assert capsys.readouterr().err == (
        "heapwatch: HEAPWATCH_TRAINER_PORT must be a port, 0 to 65535, got 'http'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "lacking", "extra"),
    [
        (["up"], "rich", "stack"),
        (["receiver"], "uvicorn", "receiver"),
        (["viewer"], "nicegui", "viewer"),
        (["completion", "bash"], "shtab", "cli"),
    ],
)
def test_without_an_extra_one_line_says_how_to_get_it(
    arguments: list[str], lacking: str, extra: str, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.modules[{lacking!r}] = None; from heapwatch.cli.main import main;"
        f" sys.exit(main({arguments!r}))"
    )
    environment = {**os.environ, "HEAPWATCH_STATE": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"error: this command needs {lacking}: pip install 'heapwatch[{extra}]'\n"


def test_a_full_disk_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "state" / "etc" / "x"))

    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("heapwatch.stack.native.NativeStack.up", full)
    assert main(["up", "--mode", "native"]) == 1
    told = capsys.readouterr().err
    assert told == f"error: {tmp_path}/state/etc/x: No space left on device\n"


def test_ps_lists_a_trainer_and_scripts_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    assert main(["ps"]) == 0
    assert "no trainer is registered" in capsys.readouterr().out
    (port,) = free_ports(1)
    with heapwatch.lifecycle.start("swimmer", port=port) as watch:
        watch.step()
        assert main(["ps", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert main(["ps"]) == 0
    assert (row["trainer"], row["address"]) == ("swimmer", f"127.0.0.1:{port}")
    assert row["memory_bytes"] > 1e6
    assert f"swimmer  127.0.0.1:{port}" in capsys.readouterr().out
