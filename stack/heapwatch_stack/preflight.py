"""Checks before anything starts: the system, the ports, the configuration files, the data."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from heapwatch.runtime.own_files import read_text, replace
from heapwatch_stack import processes
from heapwatch_stack.binaries import Binaries
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Endpoint, Settings

MACHINES = ("x86_64", "aarch64", "arm64")
# Data of this version and later cannot be read by earlier ones:
# https://prometheus.io/docs/prometheus/latest/migration/#tsdb-format-and-downgrade
NEW_FORMAT = (2, 55)
_ENDLESS = (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)


def check_system(system: str = sys.platform, machine: str = platform.machine()) -> None:
    """Raise StackError if the services cannot run without Docker."""
    if system != "linux" or machine not in MACHINES:
        raise StackError(
            f"{system} on {machine} is not supported without Docker: start a Docker engine and use"
            f" `make up MODE=docker`, or use Linux on {' or '.join(MACHINES[:2])}"
        )


def check_ports(settings: Settings, endpoints: Iterable[Endpoint]) -> None:
    """Raise StackError for the first port that another process uses, with its name if known."""
    for endpoint in endpoints:
        if _is_free(settings.bind, endpoint.port):
            continue
        owner = processes.listening(endpoint.port)
        who = f"process {owner.pid} ({_command(owner.pid)})" if owner else "another process"
        raise StackError(
            f"port {endpoint.port} ({endpoint.name}) is taken by {who}: stop it, or choose another port with"
            f" {endpoint.port_variable}=NUMBER"
        )


def check_files(state: Path, targets: Path) -> None:
    """Raise StackError for a pipe or a device in a folder of ours: a service that opens it waits for ever."""
    for folder in (*(state / name for name in ("", "etc", "data", "logs", "run", "secrets")), targets):
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if os.path.exists(entry) and stat.S_IFMT(entry.stat().st_mode) in _ENDLESS:
                    raise StackError(f"{entry.path} is a pipe or a device: remove it, nothing was started")


def check_configuration(settings: Settings, binaries: Binaries) -> list[str]:
    """Check with promtool, amtool and docker-compose, if installed; returns what was checked."""
    promtool, amtool = str(binaries.promtool.path), str(binaries.amtool.path)
    prometheus, alertmanager = settings.etc / "prometheus.yml", settings.etc / "alertmanager.yml"
    _check([promtool, "check", "config", str(prometheus)], "prometheus/prometheus.yml and prometheus/rules")
    _check([amtool, "check-config", str(alertmanager)], "alerting/alertmanager.yml")
    checked = ["prometheus.yml and rules (promtool)", "alertmanager.yml (amtool)"]
    if settings.checkout and shutil.which("docker-compose"):
        _check(
            ["docker-compose", "-f", str(settings.checkout / "docker-compose.yml"), "config", "-q"],
            "docker-compose.yml",
        )
        checked.append("docker-compose.yml")
    return checked


def check_data(settings: Settings, binaries: Binaries) -> None:
    """Raise StackError if a newer Prometheus wrote data that this one cannot read; else store its version."""
    folder = settings.state / "data" / "prometheus"
    note = folder.with_suffix(".version")
    ours = _version(binaries.prometheus.version)
    newest = _version(read_text(note)) if note.exists() and folder.is_dir() else (0,)
    if ours < NEW_FORMAT <= newest:
        wrote = ".".join(map(str, newest))
        raise StackError(
            f"Prometheus {wrote} wrote the data in {folder}, which {binaries.prometheus.version}"
            f" ({binaries.prometheus.source}) cannot read: put 2.55 or newer on PATH, or move the folder"
        )
    if ours > newest:
        replace(note, binaries.prometheus.version)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip().split(".") if part.isdigit())


def _is_free(bind: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except PermissionError:
            raise StackError(f"port {port} needs root; choose one above 1023") from None
        except socket.gaierror as error:
            raise StackError(f"{_no_address(bind)}: {error}") from None
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise StackError(_no_address(bind)) from None
            return False
    return True


def _no_address(bind: str) -> str:
    return f"HEAPWATCH_BIND is {bind!r}, which is not an address of this machine"


def _command(pid: int) -> str:
    raw = Path(f"/proc/{pid}/cmdline").read_bytes() if os.path.exists(f"/proc/{pid}/cmdline") else b""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:80]


def _check(command: list[str], what: str) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [
            line
            for line in lines
            if "FAILED" not in line and "SUCCESS" not in line and "Checking" not in line
        ]
        reason = "; ".join((reasons or lines)[:3])
        raise StackError(f"{what} is broken, nothing was started: {reason}")
