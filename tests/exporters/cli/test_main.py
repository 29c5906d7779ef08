"""The command line as a whole: what it has, what it says without an extra, what scripts read."""

import os
import re
import subprocess
import sys

import pytest

import heapwatch
from heapwatch.cli.main import _MODULES
from heapwatch.discovery import TargetFile


def test_help_has_every_verb_and_there_is_a_version(run):
    assert run("--version") == (0, f"heapwatch {heapwatch.__version__}\n", "")
    code, printed, _ = run("--help")
    assert run() == (code, printed, "")
    assert code == 0
    assert set(re.findall(r"^ +(\w+)", printed, re.MULTILINE)) >= set(_MODULES)


def test_a_command_loads_no_other_and_run_no_watch():
    code = (
        "import sys; from heapwatch.cli import main; main._parser('run');"
        "print(*(name for name in sys.modules if name.startswith(('heapwatch_', 'heapwatch.'))))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert {name for name in loaded if name.startswith("heapwatch.cli.")} == {
        "heapwatch.cli.main", "heapwatch.cli.results", "heapwatch.cli.run", "heapwatch.cli.run_options",
    }  # fmt: skip
    assert not {"heapwatch.watch", "heapwatch.exporter", "heapwatch_stack"} & set(loaded)


@pytest.mark.parametrize("command", ["report", "attach"])
def test_an_unknown_option_is_answered_with_the_usage_of_its_command(command, run):
    code, _, errors = run(command, "1", "--bogus")
    assert code == 64
    assert errors.startswith(f"usage: heapwatch {command} ")
    assert errors.endswith(f"heapwatch {command}: error: unrecognized arguments: --bogus\n")


@pytest.mark.parametrize(
    ("arguments", "lacking", "extra"),
    [(["up"], "rich", "stack"), (["receiver"], "uvicorn", "receiver"), (["viewer"], "nicegui", "viewer")],
)
def test_without_an_extra_one_line_says_how_to_get_it(arguments, lacking, extra, tmp_path):
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


@pytest.mark.parametrize("command", [["top", "--once"], ["explain", "swimmer"]])
def test_a_folder_of_nobody_is_one_line(command, monkeypatch, run):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", "~nobody-here/targets")
    code, _, errors = run(*command)
    assert code == 64
    assert errors.startswith("heapwatch: the folders of targets are not known: ~nobody-here/targets: ")
    assert errors.count("\n") == 1


def test_a_registered_trainer_is_explained_by_its_name(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swimmer").mkdir()  # a folder of the same name is no recording
    with heapwatch.start("swimmer", port=0):
        code, printed, _ = run("explain", "swimmer")
        assert code == 0
        assert "too early" in printed
        code, _, errors = run("explain", "swimer")
        assert (code, errors.startswith("heapwatch: no trainer is registered as swimer; ")) == (3, True)


def test_two_trainers_of_one_name_are_distinguished_by_address(tmp_path, monkeypatch, run):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    for port in (1, 2):
        TargetFile(tmp_path, "127.0.0.1", port, trainer="ppo").write()
    code, _, errors = run("explain", "ppo")
    assert code == 3
    assert "2 trainers are called ppo: give the address, 127.0.0.1:1 or 127.0.0.1:2" in errors
