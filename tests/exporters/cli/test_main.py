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
from prometheus_client.parser import text_string_to_metric_families

import heapwatch.lifecycle
from heapwatch.analysis.readings import Readings
from heapwatch.cli.main import GROUPS, _parser, main
from heapwatch.cli.sources import Sample
from heapwatch.runtime.plain_text import plain
from tests.support.ports import free_ports
from tests.support.unreadable_files import HOSTILE


def test_help_has_every_verb_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(_parser().verbs)
    for title, verbs in GROUPS.items():
        listed = re.search(rf"^{title}:\n(.*?)\n\n", told, re.MULTILINE | re.DOTALL)
        assert listed, title
        assert re.findall(r"^  (\w+)", listed[1], re.MULTILINE) == verbs.split()


def test_completion_and_manual_page_are_made_of_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("argparse_manpage", reason="argparse-manpage is not installed")
    for shell in ("bash", "zsh", "tcsh"):
        assert main(["completion", shell]) == 0
        assert "--fail-on" in capsys.readouterr().out
    assert main(["completion", "man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH HEAPWATCH")
    assert all(rf"\fI\,{verb}\/\fR" in page for verb in _parser().verbs)


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
    monkeypatch.setattr("heapwatch_stack.native.NativeStack.up", full)
    assert main(["up", "--mode", "native"]) == 1
    told = capsys.readouterr().err
    assert told == f"error: {tmp_path}/state/etc/x: No space left on device\n"


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("explan", "did you mean explain?"),
        ("statsu", "did you mean status?"),
        ("pss", "did you mean ps?"),
        ("qwertz", "`heapwatch --help` lists them"),
        ("\x1b[31m", "`heapwatch --help` lists them"),
    ],
)
def test_an_unknown_verb_is_one_line_with_the_nearest(
    verb: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb])
    assert ended.value.code == 64
    told = capsys.readouterr().err
    assert told == f"heapwatch: there is no command {plain(verb)}; {said}\n"


GROWING = """
trainer_info{trainer="ppo"} 1
trainer_process_resident_memory_bytes{role="trainer"} 5e8
trainer_memory_verdict{verdict="too early"} 0
trainer_memory_verdict{verdict="leak"} 1
trainer_memory_time_to_limit_seconds{bound="least"} 2400
trainer_memory_time_to_limit_seconds{bound="most"} 3500
trainer_growing_path_growth_bytes_per_minute{path="buffer",type="deque",kind="container"} 9e7
trainer_growing_path_growth_bytes_per_minute{path="history",type="list",kind="container"} 3.73e7
trainer_growing_path_leak{path="buffer",type="deque",kind="container",site="",remedy=""} 0
trainer_growing_path_leak{path="history",type="list",kind="container",site="ppo.py:80",remedy="x"} 1
"""


def test_ps_says_what_a_trainer_does_and_what_leaks_most(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = Sample("127.0.0.1:7777", 0.0, Readings(text_string_to_metric_families(GROWING)))
    down = Sample("127.0.0.1:7778", 0.0, problem="it does not answer")
    monkeypatch.setattr("heapwatch.cli.processes.TrainerSource.samples", lambda _: [sample, down])
    assert main(["ps"]) == 0
    _, ppo, other = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"ppo +127.0.0.1:7777 +leak +40 to 59 min +500 MB .*history \+37.3 MB/min \(ppo.py:80\)", ppo
    )
    assert re.fullmatch(r"\? +127.0.0.1:7778 +it does not answer", other)
    assert main(["ps", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert row["time_to_limit_seconds"] == {"least": 2400, "most": 3500}
    assert (row["verdict"], row["grows"], row["bytes_per_minute"], row["line"]) == (
        "leak",
        "history",
        3.73e7,
        "ppo.py:80",
    )
    assert main(["ps", "--quiet"]) == 0
    assert capsys.readouterr().out == "127.0.0.1:7777\n127.0.0.1:7778\n"


@pytest.mark.parametrize("kind", HOSTILE)
def test_ps_lists_a_trainer_beside_files_that_are_none(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    HOSTILE[kind](tmp_path / "a.json")
    with heapwatch.lifecycle.start("swimmer", port=0):
        assert main(["ps"]) == 0
    assert "swimmer" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["ps"], ["explain", "swimmer"], ["monitor", "--all", "--count", "1"]])
def test_a_folder_of_nobody_is_one_line(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", "~nobody-here/targets")
    assert main(command) == 64
    told = capsys.readouterr().err
    assert told.startswith("heapwatch: the folders of targets are not known: ~nobody-here/targets: ")
    assert told.count("\n") == 1


def test_a_registered_trainer_is_explained_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swimmer").mkdir()  # a folder of the same name is no recording
    with heapwatch.lifecycle.start("swimmer", port=0) as first:
        assert main(["explain", "swimmer"]) == 0
        assert "too early" in capsys.readouterr().out
        assert main(["explain", "swimmer", "--quiet"]) == 0
        assert main(["explain", "swimer"]) == 3
        told = capsys.readouterr()
        assert told.out == ""
        assert "no trainer is registered as swimer; did you mean swimmer?" in told.err
        with heapwatch.lifecycle.start("hopper", port=0) as second:
            monkeypatch.setattr(second._exporter, "name", "hopper")
            assert main(["explain", "qwertz"]) == 3
            assert "there is hopper, swimmer" in capsys.readouterr().err
        assert first.port is not None


def test_two_trainers_of_one_name_are_told_apart_by_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readings = Readings(text_string_to_metric_families(GROWING))
    both = [Sample(f"127.0.0.1:{port}", 0.0, readings) for port in (1, 2)]
    monkeypatch.setattr("heapwatch.cli.named.TrainerSource.samples", lambda _: both)
    assert main(["explain", "ppo"]) == 3
    assert (
        "2 trainers are called ppo: give the address, 127.0.0.1:1 or 127.0.0.1:2" in capsys.readouterr().err
    )


def test_doctor_is_quiet_about_what_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "127.0.0.1:1", "--prometheus", "127.0.0.1:1", "--quiet"]) == 1
    assert all(line.startswith(("  FAIL", "  WARN")) for line in capsys.readouterr().out.splitlines())


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
