"""Programs that tests run and pip does not bring."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def find(*names: str, brought_by: str = "make tools") -> str:
    """The path of the program with one of these names; a test that asks for one that is absent is skipped."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"needs {names[0]} on PATH: {brought_by}")
    return path


def amtool(*arguments: str) -> str:
    """What it prints; fails unless it accepts what it is given."""
    command = [find("amtool"), *arguments]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
