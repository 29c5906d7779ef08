"""The viewer's settings from the environment, and a check that it can listen."""

import errno
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from heapwatch import data
from heapwatch.http.server import port_owner

GENERATED = data.path("dashboards", "generated")


@dataclass(frozen=True)
class Settings:
    """Where to listen, where Prometheus is, where the dashboards are."""

    host: str = "127.0.0.1"
    port: int = 3009
    prometheus_url: str = "http://127.0.0.1:9090"
    folder: Path = GENERATED

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read HEAPWATCH_* variables. Raises ValueError naming the variable and what it may be."""
        port = environment.get("HEAPWATCH_DASHBOARDS_PORT", "3009")
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"HEAPWATCH_DASHBOARDS_PORT={port!r}: a port is a number from 1 to 65535")
        url = environment.get("HEAPWATCH_PROMETHEUS_URL", cls.prometheus_url)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"HEAPWATCH_PROMETHEUS_URL={url!r}: write an address such as http://127.0.0.1:9090"
            )
        return cls(
            host=environment.get("HEAPWATCH_BIND", cls.host),
            port=int(port),
            prometheus_url=url,
            folder=Path(environment.get("HEAPWATCH_DASHBOARDS_DIR", GENERATED)),
        )


def check_free(host: str, port: int) -> None:
    """Raise ValueError if the port cannot be used, where the web server would fail with a traceback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise ValueError(f"cannot listen on {host}:{port}: {problem.strerror}") from None
            raise ValueError(
                f"port {port} is taken by {port_owner(port)}; stop that, or set HEAPWATCH_DASHBOARDS_PORT"
            ) from None
