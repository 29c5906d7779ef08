"""Checks before anything starts: the system, the ports, the configuration files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from heapwatch_stack.alertmanager import NOTIFICATIONS, Channels, channels, hide
from heapwatch_stack.binaries import Binaries
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Endpoint, Settings

# supervisord first binds PATH.PID; the kernel allows 107 bytes.
_LONGEST_SOCKET = 99


def check_system(socket_of_supervisor: Path) -> None:
    """Raise StackError if the services cannot run without Docker, or in this state folder."""
    if sys.platform != "linux":
        raise StackError(
            "without Docker the stack needs Linux: start a Docker engine, and make up MODE=docker"
        )
    if len(os.fsencode(socket_of_supervisor)) > _LONGEST_SOCKET:
        raise StackError(
            f"{socket_of_supervisor} is longer than {_LONGEST_SOCKET} bytes, too long for a socket:"
            " set HEAPWATCH_STATE to a shorter folder"
        )


def check_ports(settings: Settings, endpoints: Iterable[Endpoint]) -> None:
    """Raise StackError for the first service that cannot listen at its address, with the system's reason."""
    family = socket.AF_INET6 if ":" in settings.bind else socket.AF_INET
    for endpoint in endpoints:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((settings.bind, endpoint.port))
            except OSError as error:
                raise StackError(
                    f"{endpoint.name} cannot listen at {settings.bind}:{endpoint.port} ({error.strerror}):"
                    f" stop what does, or choose another port with {endpoint.port_variable}=NUMBER"
                    " or another address with HEAPWATCH_BIND"
                ) from error


def check_configuration(settings: Settings, binaries: Binaries) -> None:
    """Check with promtool and amtool; StackError with the reasons of the first that finds something."""
    what = "prometheus/prometheus.yml and prometheus/rules"
    _check(what, {}, binaries.promtool.path, "check", "config", settings.etc / "prometheus.yml")
    people = channels(settings.environment)
    also = f" with {settings.environment[NOTIFICATIONS]}" if people else ""
    what = f"alerting/alertmanager.yml{also}"
    _check(what, people, binaries.amtool.path, "check-config", settings.etc / "alertmanager.yml")


def _check(what: str, secret: Channels, *command: Path | str) -> None:
    completed = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    if completed.returncode != 0:
        lines = [
            line.rpartition("FAILED:")[2].strip()
            for line in (completed.stdout + completed.stderr).splitlines()
        ]
        reasons = [line for line in lines if line and "SUCCESS" not in line and "Checking" not in line]
        reason = hide("; ".join(reasons[:3]), secret)
        raise StackError(f"{what} is broken, nothing was started: {reason}")
