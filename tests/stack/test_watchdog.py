"""Which targets the watchdog removes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heapwatch.discovery import TargetFile
from heapwatch.measure.process.kernel_kills import KernelKills
from heapwatch_stack.watchdog import remove_dead

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
    remove_dead(tmp_path, KernelKills())
    assert not dead.exists()
    assert live.path.exists()
    assert f"{dead.stem} has ended without removing its target" in capsys.readouterr().out
    live.remove()
