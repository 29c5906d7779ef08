"""A real native stack on free ports with a state of its own, and questions to it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.support.ports import free_ports

ROOT = Path(__file__).parents[2]
PORTS = ("TRAINER", "PROMETHEUS", "ALERTMANAGER", "RECEIVER", "DASHBOARDS")
START_SECONDS = 300
_Labels = dict[str, str]


class Stack:
    """The stack of a user whose state folder is `home`; a trainer of the same user finds it by default.

    Args:
        folder: for all it writes.

    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "stack.log"
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
        self.user = clean | {"XDG_STATE_HOME": str(folder / "home"), "HEAPWATCH_STATE": str(folder / "stack")}
        self._environment = (
            self.user
            | {f"HEAPWATCH_{name}_PORT": str(port) for name, port in self.ports.items()}
            | {"HEAPWATCH_CHECKOUT": str(ROOT)}
        )
        self._client = httpx.Client(timeout=20, trust_env=False)

    def up(self) -> None:
        """Start it and wait until it is healthy.

        Raises:
            RuntimeError: it did not start; the end of its output is in the message.

        """
        self._run("up")

    def down(self) -> None:
        """Stop it."""
        self._run("down")
        self._client.close()

    def query(self, expression: str) -> list[tuple[_Labels, float]]:
        """Prometheus's instant answer: labels and value of each series."""
        found = self._get("PROMETHEUS", "/api/v1/query", query=expression)["data"]["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def firing(self, since: datetime) -> list[tuple[_Labels, _Labels]]:
        """Labels and annotations of every alert that began after `since` and fires in Prometheus."""
        alerts = self._get("PROMETHEUS", "/api/v1/alerts")["data"]["alerts"]
        return [
            (alert["labels"], alert["annotations"])
            for alert in alerts
            if alert["state"] == "firing" and _moment(alert["activeAt"]) > since
        ]

    def notified(self) -> list[_Labels]:
        """Labels of the alerts that Alertmanager sends on: neither inhibited nor silenced."""
        found = self._get(
            "ALERTMANAGER", "/api/v2/alerts", active="true", inhibited="false", silenced="false"
        )
        return [alert["labels"] for alert in found]

    def _get(self, service: str, path: str, **parameters: str) -> Any:
        answer = self._client.get(f"http://127.0.0.1:{self.ports[service]}{path}", params=parameters)
        answer.raise_for_status()
        return answer.json()

    def _run(self, verb: str) -> None:
        command = [sys.executable, "-m", "heapwatch", verb, "--mode", "native"]
        with self._log.open("a", encoding="utf-8") as log:
            done = subprocess.run(
                command, env=self._environment, stdout=log, stderr=log, timeout=START_SECONDS, check=False
            )
        if done.returncode != 0:
            raise RuntimeError(f"the stack: {verb} failed: {self._log.read_text(encoding='utf-8')[-2000:]}")


def _moment(text: str) -> datetime:
    """Prometheus writes nanoseconds and a Z, which Python 3.10 does not read."""
    return datetime.strptime(text[:19] + "+0000", "%Y-%m-%dT%H:%M:%S%z")
