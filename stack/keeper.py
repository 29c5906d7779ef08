"""Restarts supervisord if it dies; supervisord in turn restarts this process.

The services of a dead supervisord would run unsupervised, so they are stopped and started again. This process
also removes the target files of trainers that were killed, and keeps these as lost, with the cause.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from heapwatch.discovery import sweep
from heapwatch.measure.kernel_kills import KernelKills
from heapwatch.runtime.own_files import open_own
from heapwatch.runtime.plain_text import say
from heapwatch.stack import processes
from heapwatch.stack.settings import Settings
from heapwatch.stack.supervision import Supervisor
from heapwatch.stack.turns import take_turn

SWEEP_SECONDS = 5.0


def main() -> int:
    """Remove stale targets until the parent dies; a supervisord that shuts down ends this process first."""
    settings = Settings.from_environment()
    parent = os.pidfd_open(os.getppid())
    kills = KernelKills()
    while not select.select([parent], [], [], SWEEP_SECONDS)[0]:
        _sweep(settings.targets, kills)
    # standard output was a pipe to supervisord
    appended = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with suppress(OSError), os.fdopen(open_own(settings.logs / "keeper.log", appended), "a") as log:
        log.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} supervisord died: starting the stack again\n")
    path = settings.state / "run" / "lock"
    with os.fdopen(open_own(path, os.O_RDWR | os.O_CREAT), "r+b") as lock:
        take_turn(lock, path)  # wait for a running `up` or `down`
        supervisor = Supervisor(settings)
        if not supervisor.running():
            processes.end_all(settings.state)
            supervisor.start()
    return 0


def _sweep(targets: Path, kills: KernelKills) -> None:
    """Remove the targets of trainers that were killed: other programs may soon use their ports."""
    with suppress(OSError):
        for path in sweep(targets, kills):
            say(f"{path.stem} has ended without removing its target: removed")


if __name__ == "__main__":
    sys.exit(main())
