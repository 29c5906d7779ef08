"""Whether a process ends while a command is at work in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from heapwatch.cli.followed import Followed
from heapwatch.measure.process.ended import Ending
from tests.support.descriptors import of_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how a process has ended")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


@pytest.mark.parametrize("tells", [True, False])
def test_the_end_is_noticed_at_once(
    tells: bool, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tells:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with Followed(psutil.Process(process.pid), "train") as followed:
        assert of_processes() == tells
        assert followed.ended_within(0.0) is None
        assert followed.end("then") is None
        threading.Timer(0.2, process.kill).start()
        began = time.monotonic()
        assert followed.ended_within(60.0) == Ending(signal=signal.SIGKILL)
        assert time.monotonic() - began < 30
        end = followed.end("then")
        assert end is not None
        assert str(end) == f"process {process.pid} (train) was killed by SIGKILL then (signal 9)"
        assert end.exit_code == 4
    assert of_processes() == 0
