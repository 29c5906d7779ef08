"""A process beside the services that looks after trainers and services, under the same supervisor.

It removes the target files of trainers that were killed, and records these as lost, with the cause. It checks
each service, and reports an unhealthy one in its log and to the viewer, because an alert about Alertmanager
would need Alertmanager.
"""

from __future__ import annotations

import time
import xmlrpc.client
from collections import Counter
from contextlib import suppress
from pathlib import Path

from heapwatch.discovery import sweep
from heapwatch.measure.process.process_tree import KernelKills
from heapwatch.runtime.own_files import replace
from heapwatch.runtime.plain_text import say
from heapwatch_stack.health import HEALTHY, supervised
from heapwatch_stack.settings import Settings
from heapwatch_stack.supervision import Supervisor
from heapwatch_viewer.unhealthy_services import UNHEALTHY

SWEEP_SECONDS = 5.0
WATCH_SECONDS = 30.0
REPORT_AFTER = 3  # checks in a row


def main() -> None:
    """Look every few seconds, until the supervisor ends this process."""
    settings = Settings.from_environment()
    kills = KernelKills()
    watch = Watch(settings)
    while True:
        _sweep(settings.targets, kills)
        watch.check()
        time.sleep(SWEEP_SECONDS)


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
    main()
