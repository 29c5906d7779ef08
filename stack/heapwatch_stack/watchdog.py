"""Restarts supervisord if it dies; supervisord in turn restarts this process.

The services of a dead supervisord would run unsupervised, so they are stopped and started again. This process
also removes the target files of trainers that were killed, and records these as lost, with the cause. It
checks each service, and reports an unhealthy one in its log and to the viewer, because an alert about
Alertmanager would need Alertmanager.
"""

from __future__ import annotations

import os
import select
import sys
import time
import xmlrpc.client
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil

from heapwatch.discovery import sweep
from heapwatch.measure.process.process_tree import KernelKills
from heapwatch.runtime.own_files import open_own, replace
from heapwatch.runtime.plain_text import say
from heapwatch_stack import processes
from heapwatch_stack.health import HEALTHY, supervised
from heapwatch_stack.settings import Settings
from heapwatch_stack.state_folder import locked
from heapwatch_stack.supervision import Supervisor
from heapwatch_viewer.unhealthy_services import UNHEALTHY

SWEEP_SECONDS = 5.0
WATCH_SECONDS = 30.0
REPORT_AFTER = 3  # checks in a row


def main() -> int:
    """Remove stale targets until the parent dies; a supervisord that shuts down ends this process first."""
    settings = Settings.from_environment()
    parent = _supervisor(settings.state)
    kills = KernelKills()
    watch = Watch(settings)
    while parent is not None and not select.select([parent], [], [], SWEEP_SECONDS)[0]:
        _sweep(settings.targets, kills)
        watch.check()
    # standard output was a pipe to supervisord
    appended = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with suppress(OSError), os.fdopen(open_own(settings.logs / "watchdog.log", appended), "a") as log:
        log.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} supervisord died: starting the stack again\n")
    with locked(settings.state / "run" / "lock"):  # wait for a running `up` or `down`
        supervisor = Supervisor(settings)
        if not supervisor.running():
            processes.end_all(settings.state)
            supervisor.start()
    return 0


def _supervisor(state: Path) -> int | None:
    """A descriptor of the supervisord that started this process; None if it died while this process started.

    Such a process has another parent, whose end would never come.
    """
    with suppress(OSError, psutil.NoSuchProcess):
        parent = psutil.Process(os.getppid())
        descriptor = os.pidfd_open(parent.pid)
        if processes.is_of_stack(parent, state):
            return descriptor
    return None


class Watch:
    """Reports a service that is unhealthy for longer than a restart takes, and when it is healthy again.

    It reports in the log, and in a file that the viewer's pages show.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._supervisor = Supervisor(settings)
        self._unhealthy = Counter[str]()
        self._reported: dict[str, str] = {}
        self._written: str | None = None
        self._next = 0.0

    def check(self) -> None:
        """Check each service, once in WATCH_SECONDS."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + WATCH_SECONDS
        with suppress(OSError, xmlrpc.client.Error):  # the supervisor is ending
            running = self._supervisor.processes()
            for endpoint in self._settings.endpoints().values():
                if endpoint.name in running:
                    self._judge(endpoint.name, supervised(self._settings, endpoint, running[endpoint.name]))
        self._write()

    def _judge(self, name: str, state: str) -> None:
        if state == HEALTHY:
            self._unhealthy.pop(name, None)
            if self._reported.pop(name, None):
                say(f"{name} is healthy again")
            return
        self._unhealthy[name] += 1
        if self._unhealthy[name] >= REPORT_AFTER:
            if name not in self._reported:
                say(f"{name}: {state}. Alerts may be lost: heapwatch status")
            self._reported[name] = state

    def _write(self) -> None:
        text = "".join(f"{name}: {state}\n" for name, state in self._reported.items())
        if text != self._written:
            with suppress(OSError):  # tried again at the next check
                replace(self._settings.state / UNHEALTHY, text)
                self._written = text


def _sweep(targets: Path, kills: KernelKills) -> None:
    """Remove the targets of trainers that were killed: other programs may soon use their ports."""
    with suppress(OSError):
        for path in sweep(targets, kills):
            say(f"{path.stem} has ended without removing its target: removed")


if __name__ == "__main__":
    sys.exit(main())
