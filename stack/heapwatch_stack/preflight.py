"""Checks before anything starts: the system, the ports, the configuration files."""

from __future__ import annotations

import errno
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from heapwatch_stack import configuration, processes
from heapwatch_stack.alertmanager import NOTIFICATIONS, Channels, hide
from heapwatch_stack.binaries import Binaries
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Endpoint, Settings

MACHINES = ("x86_64", "aarch64", "arm64")


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


def check_configuration(settings: Settings, binaries: Binaries) -> list[str]:
    """Check with promtool and amtool; returns what was checked."""
    promtool, amtool = str(binaries.promtool.path), str(binaries.amtool.path)
    prometheus, alertmanager = settings.etc / "prometheus.yml", settings.etc / "alertmanager.yml"
    _check(
        [promtool, "check", "config", str(prometheus)], "prometheus/prometheus.yml and prometheus/rules", {}
    )
    people = configuration.notifications(settings)
    also = f" with {settings.environment[NOTIFICATIONS]}" if people else ""
    _check([amtool, "check-config", str(alertmanager)], f"alerting/alertmanager.yml{also}", people)
    return ["prometheus.yml and rules (promtool)", f"alertmanager.yml{also} (amtool)"]


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


def _check(command: list[str], what: str, secret: Channels) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        lines = [line.rpartition("FAILED:")[2].strip() for line in (done.stdout + done.stderr).splitlines()]
        reasons = [line for line in lines if line and "SUCCESS" not in line and "Checking" not in line]
        reason = hide("; ".join(reasons[:3]), secret)
        raise StackError(f"{what} is broken, nothing was started: {reason}")
