"""The state of each step of the loop: trainer, Prometheus, Alertmanager, receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from heapwatch.errors import Unreachable
from heapwatch.http.client import post_json
from heapwatch.runtime.own_files import read_text
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings

_CLEANUP_SECONDS = 30.0


@dataclass(frozen=True)
class DemoLevels:
    """The levels that the demonstration makes leak; memory is resident bytes, `steps` all steps so far."""

    bodies: float
    food: float
    memory: float
    steps: float = 0.0

    def __str__(self) -> str:
        return f"{self.bodies:,.0f} bodies, {self.food:,.0f} food, {self.memory / 1e6:,.0f} MB"


class Loop:
    """Reads the four services over HTTP; each method raises StackError if a service does not answer.

    Args:
        settings: settings of the stack.
        instance: the trainer's `instance` in Prometheus.
        port: port of the trainer.

    """

    def __init__(self, settings: Settings, instance: str, port: int) -> None:
        self._settings = settings
        self._trainer_port = port
        self._client = httpx.Client(timeout=10, trust_env=False)
        self.instance = instance

    def status(self) -> dict[str, Any]:
        """The trainer's /performance_status."""
        return dict(self._json("the trainer", self._trainer_port, "/performance_status"))

    def levels(self) -> DemoLevels:
        """Bodies, food and memory as the trainer reports them."""
        status = self.status()
        return DemoLevels(
            bodies=status["entities"]["world_bodies"],
            food=status["entities"]["food_sources"],
            memory=status["memory"]["resident_bytes"]["trainer"],
            steps=status["progress"]["step"],
        )

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The result of an instant query: labels and value of each series."""
        path = "/api/v1/query"
        answer = self._json("Prometheus", self._settings.ports.prometheus, path, {"query": expression})
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def recorded(self) -> DemoLevels | None:
        """The same levels at Prometheus's last scrape; None while one is missing."""
        found = [
            self.query(f'sum(trainer_bodies{{instance="{self.instance}"}})'),
            self.query(f'trainer_entities{{instance="{self.instance}", type="food_sources"}}'),
            self.query(
                f'trainer_process_resident_memory_bytes{{instance="{self.instance}", role="trainer"}}'
            ),
        ]
        return DemoLevels(*(answer[0][1] for answer in found)) if all(found) else None

    def limit(self, resource: str, component: str, severity: str) -> float | None:
        """The effective limit of this trainer, as the rules record it."""
        labels = f'instance="{self.instance}", resource="{resource}", component="{component}"'
        found = self.query(f'job:trainer_limit:effective{{{labels}, severity="{severity}"}}')
        return found[0][1] if found else None

    def alerts(self) -> list[dict[str, str]]:
        """Labels of this trainer's alerts on limits that request a cleanup, with `alertstate`."""
        chosen = f'instance="{self.instance}", action="cleanup", kind="threshold"'
        return [labels for labels, _ in self.query(f"ALERTS{{{chosen}}}")]

    def firing(self) -> list[dict[str, str]]:
        """Labels of this trainer's firing alerts on limits, growth and leaks."""
        chosen = f'instance="{self.instance}", alertstate="firing", kind=~"threshold|growth|leak"'
        return [labels for labels, _ in self.query(f"ALERTS{{{chosen}}}")]

    def clean(self, action: str) -> None:
        """Request a cleanup from the trainer directly."""
        secret = read_text(self._settings.token_file, private=True).strip()
        url = self._settings.url(self._trainer_port) + "/force_cleanup"
        asked = {"action": action, "reason": "demonstration: what leaked after the receiver's cleanup"}
        try:
            post_json(url, asked, secret, _CLEANUP_SECONDS)
        except Unreachable as error:
            raise StackError(f"the trainer does not clean up: {error}") from error

    def notified(self) -> list[dict[str, str]]:
        """Labels of the same alerts that are active in Alertmanager."""
        parameters = {"filter": 'action="cleanup"', "active": "true"}
        listed = self._json("Alertmanager", self._settings.ports.alertmanager, "/api/v2/alerts", parameters)
        return [alert["labels"] for alert in listed if alert["labels"].get("instance") == self.instance]

    def actions(self) -> list[dict[str, Any]]:
        """The receiver's rows about this trainer, newest first."""
        parameters = {"instance": self.instance, "limit": "100"}
        rows = self._json("the receiver", self._settings.ports.receiver, "/actions", parameters)["rows"]
        return list(rows)

    def freed(self) -> float:
        """Bytes freed by cleanups of this trainer, at Prometheus's last scrape."""
        found = self.query(f'sum(trainer_cleanup_freed_bytes_total{{instance="{self.instance}"}})')
        return found[0][1] if found else 0.0

    def _json(self, who: str, port: int, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        try:
            answer = self._client.get(self._settings.url(port) + path, params=parameters)
            answer.raise_for_status()
            return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise StackError(
                f"{who} does not answer on port {port} ({error}); is the stack up? heapwatch status"
            ) from error
