"""The viewer's settings from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from heapwatch import data

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
        return cls(host=environment.get("HEAPWATCH_BIND", cls.host), port=int(port), prometheus_url=url)
