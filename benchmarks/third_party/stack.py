"""A real native stack on free ports with a state of its own, and questions to it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.support import running_stack

START_SECONDS = 300
_Labels = dict[str, str]


class Stack(running_stack.Stack):
    """The stack of a user whose state folder is in `folder`; a trainer of the same user finds it by default.

    Attributes:
        user: the environment of that user, in which a trainer runs.

    """

    def __init__(self, folder: Path) -> None:
        state = {"XDG_STATE_HOME": str(folder / "home"), "HEAPWATCH_STATE": str(folder / "stack")}
        super().__init__(folder, **state, HEAPWATCH_TARGETS_DIR="", HTTPS_PROXY="")
        own = {name: text for name, text in self.environment.items() if not name.startswith("HEAPWATCH_")}
        self.user = own | state
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
        answer = self._get("/api/v1/query", query=expression)
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def firing(self, since: datetime) -> list[tuple[_Labels, _Labels]]:
        """Labels and annotations of every alert that began after `since` and fires in Prometheus."""
        alerts = self._get("/api/v1/alerts")["data"]["alerts"]
        return [
            (alert["labels"], alert["annotations"])
            for alert in alerts
            if alert["state"] == "firing" and _moment(alert["activeAt"]) > since
        ]

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._client.get(f"{self.settings.url('prometheus')}{path}", params=parameters)
        answer.raise_for_status()
        return answer.json()

    def _run(self, verb: str) -> None:
        done = self.run(verb, timeout=START_SECONDS)
        if done.returncode != 0:
            raise RuntimeError(f"the stack: {verb} failed: {(done.stdout + done.stderr)[-2000:]}")


def _moment(text: str) -> datetime:
    """Prometheus writes nanoseconds and a Z, which Python 3.10 does not read."""
    return datetime.strptime(text[:19] + "+0000", "%Y-%m-%dT%H:%M:%S%z")
