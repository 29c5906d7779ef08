"""A stack of one's own: temporary state, free ports, the same command line that make uses."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from heapwatch_stack.demo import Loop
from heapwatch_stack.settings import TRAINER, Settings
from heapwatch_stack.supervision import Supervisor
from tests.support.ports import free_ports
from tests.support.repository import REPOSITORY

MINUTES = 60
# The programs are on PATH, and the viewer replaces Grafana.
NOT_DOWNLOADED = {"HTTPS_PROXY": "http://127.0.0.1:9"}
PORTS = ("TRAINER", "PROMETHEUS", "ALERTMANAGER", "RECEIVER", "DASHBOARDS")


def port_variables() -> dict[str, str]:
    """Free ports for every service."""
    return {f"HEAPWATCH_{name}_PORT": str(port) for name, port in zip(PORTS, free_ports(5), strict=True)}


def finished(process: subprocess.Popen[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """What it said until it ended; what does not end in time is killed."""
    try:
        out, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def of_stack(state: Path) -> list[psutil.Process]:
    """supervisord of a state folder, and what it started, which it gives its address."""
    address = f"unix://{state / 'run' / 'sock'}"
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            ours = process.environ().get("SUPERVISOR_SERVER_URL") == address
            if ours or str(state / "etc" / "supervisord.conf") in process.cmdline():
                found.append(process)
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


class Stack:
    def __init__(self, folder: Path, **changes: str) -> None:
        self.folder = folder
        own = {
            "HEAPWATCH_CHECKOUT": str(REPOSITORY),
            "HEAPWATCH_STATE": str(folder / "state ü"),
            "HEAPWATCH_TARGETS_DIR": str(folder / "targets"),
            "XDG_STATE_HOME": str(folder / "user"),
        }
        # NiceGUI behaves differently where it sees pytest's names
        foreign = ("HEAPWATCH_", "PYTEST_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environment = clean | port_variables() | own | NOT_DOWNLOADED | changes
        self.settings = Settings.from_environment(self.environment)
        self.supervisor = Supervisor(self.settings)
        self.trainer = f"127.0.0.1:{self.settings.services[TRAINER].port}"

    def start(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "heapwatch", verb, "--mode", "native", *arguments]
        return subprocess.Popen(
            command, cwd=REPOSITORY, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, verb: str, *arguments: str, timeout: float = 4 * MINUTES
    ) -> subprocess.CompletedProcess[str]:
        return finished(self.start(verb, *arguments), timeout)

    def loop(self) -> Loop:
        return Loop(self.settings, self.trainer)

    def pids(self) -> dict[str, int]:
        return {name: info["pid"] for name, info in self.supervisor.processes().items()}

    def processes(self) -> list[psutil.Process]:
        return of_stack(self.settings.state)
