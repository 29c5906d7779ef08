"""Scripts that are run for a time and then interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_BACKGROUND_JOB = """
import signal, sys
from pathlib import Path
from benchmarks.zoo.running import allow_interrupts, run

signal.signal(signal.SIGINT, signal.SIG_IGN)
allow_interrupts()
endless = "import time; print('started'); time.sleep(600)"
outcome = run([sys.executable, "-c", endless], Path(sys.argv[1]), 5, interrupt=True)
print(outcome.status, outcome.last_words)
"""


def test_a_background_job_interrupts_what_it_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _BACKGROUND_JOB, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["-2", "KeyboardInterrupt"]
