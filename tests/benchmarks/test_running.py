"""Scripts that are run for a time, interrupted, and end with all that they started."""

import signal
import sys
from contextlib import suppress

import psutil
import pytest

from benchmarks.running import allow_interrupts, run

pytestmark = pytest.mark.slow


@pytest.fixture
def background_job():
    """Signals as a shell's background job has them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("background_job")
def test_a_background_job_interrupts_what_it_runs_and_ends_what_that_started(tmp_path):
    allow_interrupts()
    child = (
        "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    )
    outcome = run([sys.executable, "-c", child], tmp_path, 4, interrupt=True)
    assert (outcome.status, outcome.last_words) == (-signal.SIGINT, "KeyboardInterrupt")
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(outcome.stdout)).wait(30)
