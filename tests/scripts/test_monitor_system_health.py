"""The scripts of the walker run without its environment, and find it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import REPOSITORY

WITHOUT_PACKAGES = (sys.executable, "-I", "-S")


@pytest.fixture
def clone(tmp_path):
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "clone" / "scripts")
    return tmp_path / "clone"


def environment(state):
    """An environment that `make` has set up: its Python says how it was called."""
    python = state / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$0 $@"\n')
    python.chmod(0o755)
    return python


def run(*command, **variables):
    known = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
    done = subprocess.run(command, env=known | variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("state", ["of the clone", "named"])
def test_the_monitor_finds_its_environment(clone, tmp_path, state):
    named = tmp_path / "state"
    python = environment(named if state == "named" else clone / ".heapwatch")
    script = clone / "scripts" / "monitor_system_health.py"
    command = (*WITHOUT_PACKAGES, script, "--count", "1")
    variables = {"HEAPWATCH_STATE": str(named)} if state == "named" else {}
    assert run(*command, **variables) == (0, f"{python} {script} --count 1\n", "")


@pytest.mark.parametrize("script", ["monitor_system_health.py", "start_monitoring.sh"])
def test_without_an_environment_one_line_says_how_to_get_it(clone, tmp_path, script):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {" ".join(WITHOUT_PACKAGES)} "$@"\n')
    bare.chmod(0o755)
    command = [clone / "scripts" / script] if script.endswith(".sh") else [bare, clone / "scripts" / script]
    code, output, errors = run(*command, PYTHON=str(bare))
    assert (code, output) == (1, "")
    assert len(errors.splitlines()) == 1
    assert f"run `make venv` in {clone}" in errors
    assert "No module named 'heapwatch'" in errors


def test_an_environment_without_heapwatch_does_not_run_itself_for_ever(clone):
    folder = clone / ".heapwatch" / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    code, _, errors = run(folder / "bin" / "python", "-I", clone / "scripts" / "monitor_system_health.py")
    assert (code, len(errors.splitlines())) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--interval", "25", "--auto-cleanup", "--aggressive-thresholds")])
def test_the_start_script_hands_all_options_to_the_monitor_and_adds_none(clone, options):
    script = clone / "scripts" / "start_monitoring.sh"
    assert run(script, *options, PYTHON="echo") == (
        0,
        " ".join((str(Path(script).with_name("monitor_system_health.py")), *options)) + "\n",
        "",
    )
