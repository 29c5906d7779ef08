"""What the demonstration reads and controls: the four services, and a trainer that leaks on request."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from heapwatch.errors import Unreachable
from heapwatch.http.client import post_json
from heapwatch.runtime.own_files import read_text
from heapwatch_stack import health
from heapwatch_stack.compose import ComposeStack
from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.services import environment
from heapwatch_stack.settings import Settings

_CLEANUP_SECONDS = 30.0
_STARTS_WITHIN = 120.0
_ENDS_WITHIN = 20
_SWITCHED_WITHIN = 120


Stack = NativeStack | ComposeStack


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

    `instance` is the trainer's in Prometheus.
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
        own = f'instance="{self.instance}"'
        bodies = self._value(f"sum(trainer_bodies{{{own}}})")
        food = self._value(f'trainer_entities{{{own}, type="food_sources"}}')
        memory = self._value(f'trainer_process_resident_memory_bytes{{{own}, role="trainer"}}')
        return None if bodies is None or food is None or memory is None else DemoLevels(bodies, food, memory)

    def limit(self, resource: str, component: str, severity: str) -> float | None:
        """The effective limit of this trainer, as the rules record it."""
        labels = f'instance="{self.instance}", resource="{resource}", component="{component}"'
        return self._value(f'job:trainer_limit:effective{{{labels}, severity="{severity}"}}')

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
        reason = "demonstration: what leaked after the receiver's cleanup"
        asked = {"action": action, "reason": reason, "request_id": uuid.uuid4().hex}
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
        return list(self._json("the receiver", self._settings.ports.receiver, "/actions", parameters)["rows"])

    def freed(self) -> float:
        """Bytes freed by cleanups of this trainer, at Prometheus's last scrape."""
        return self._value(f'sum(trainer_cleanup_freed_bytes_total{{instance="{self.instance}"}})') or 0.0

    def _value(self, expression: str) -> float | None:
        return next((value for _, value in self.query(expression)), None)

    def _json(self, who: str, port: int, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        try:
            answer = self._client.get(self._settings.url(port) + path, params=parameters)
            answer.raise_for_status()
            return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise StackError(
                f"{who} does not answer on port {port} ({error}); is the stack up? heapwatch status"
            ) from error


class ExampleTrainer:
    """The example trainer that runs in the stack of a clone."""

    def __init__(self, stack: Stack, settings: Settings) -> None:
        self.instance = stack.trainer_target
        self.port = settings.ports.trainer
        self._stack = stack
        self._checkout = settings.checkout

    def leak(self, rates: Mapping[str, float]) -> None:
        """Call the command of the example."""
        arguments = [f"{name}={rate:g}" for name, rate in rates.items()] or ["off"]
        command = self._stack.leak(*arguments)
        try:
            done = subprocess.run(
                command, cwd=self._checkout, text=True, capture_output=True, timeout=_SWITCHED_WITHIN
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"the leak was not switched within {_SWITCHED_WITHIN} s") from None
        if done.returncode != 0:
            raise StackError(f"the leak could not be switched: {(done.stderr or done.stdout).strip()}")


class SmallTrainer:
    """`heapwatch_stack.trainer` as a child process."""

    def __init__(self, settings: Settings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "heapwatch_stack.trainer"],
            env={**os.environ, **environment(settings)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        answers, _, _ = select.select([self._process.stdout], [], [], _STARTS_WITHIN)
        said = self._process.stdout.readline().strip() if answers else f"no output in {_STARTS_WITHIN:.0f} s"
        if not said.isdigit():
            self.end()
            raise StackError(f"the demonstration's trainer did not start: {said or 'no output'}")
        self.port = int(said)
        self.instance = f"{settings.host}:{self.port}"

    def leak(self, rates: Mapping[str, float]) -> None:
        """Write the rates to its standard input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(dict(rates)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise StackError("the demonstration's trainer has ended") from None

    def end(self) -> None:
        """Close its input, which ends it; kill it if it does not end."""
        try:
            self._process.communicate(timeout=_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


Trainer = ExampleTrainer | SmallTrainer


@contextmanager
def leaking_trainer(
    stack: Stack, settings: Settings, in_cooldown: Callable[[Trainer], bool]
) -> Iterator[Trainer]:
    """The stack's example if it has one, else a small trainer that ends with the context.

    `in_cooldown`: whether the receiver does not act on the example after a cleanup. Then a small trainer is
    started, unless the stack runs in containers, which cannot reach it.
    """
    if settings.checkout or isinstance(stack, ComposeStack):
        own = ExampleTrainer(stack, settings)
        if isinstance(stack, ComposeStack) or not in_cooldown(own):
            yield own
            return
    small = SmallTrainer(settings)
    try:
        health.wait_scraped(settings, {"the demonstration's trainer": small.instance})
        yield small
    finally:
        small.end()
