"""The threads of a watch only wait, as far as reads beside them are concerned: else none would be made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# The journal, the server, SIGTERM and the timer of `heapwatch run` have threads; so has a registration.
PROGRAM = """
import threading, time
from heapwatch.measure.introspection.exclusive_reads import read_alone

def read():
    for _ in range(100):
        time.sleep(0.03)
        answers.append(read_alone([answers], (list.__len__,)) is not None)

answers = []
reader = threading.Thread(target=read)
reader.start()
reader.join()
print("answered", sum(answers))
"""


def test_no_thread_of_ours_is_a_reason_to_read_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "heapwatch.cli.main", "run", "--seconds", "60", "--record", "records"]
    state = {"HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets"), "HEAPWATCH_STATE": str(tmp_path / "state")}
    done = subprocess.run(
        [*command, "train.py"],
        cwd=tmp_path,
        env=os.environ | state,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Some of the time one of them works.
    assert int(done.stdout.split()[-1]) > 50, done.stdout
