"""The demonstration: makes a small trainer leak, reports each service's reaction, checks the outcome."""

from __future__ import annotations

import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from rich.console import Console

from heapwatch.runtime.plain_text import plain
from heapwatch_stack import health
from heapwatch_stack.compose import ComposeStack
from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.report import Narrator
from heapwatch_stack.settings import Settings

PATIENCE = 420
CALM = 1.05  # of the bodies before
SAID_AFTER = 5.0
SAID_AGAIN_AFTER = 30.0
STARTS_WITHIN = 120.0
ENDS_WITHIN = 20
T = TypeVar("T")
Stack = NativeStack | ComposeStack


@dataclass(frozen=True)
class Levels:
    """What the demonstration makes leak; memory is resident bytes."""

    bodies: float
    food: float
    memory: float

    def __str__(self) -> str:
        return f"{self.bodies:,.0f} bodies, {self.food:,.0f} food, {self.memory / 1e6:,.0f} MB"


class Loop:
    """What Prometheus, Alertmanager and the receiver know of one trainer, by its `instance` in Prometheus.

    Each method raises StackError if a service does not answer.
    """

    def __init__(self, settings: Settings, instance: str) -> None:
        self._settings = settings
        self._client = httpx.Client(timeout=10, trust_env=False)
        self.instance = instance

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The result of an instant query: labels and value of each series."""
        path = "/api/v1/query"
        answer = self._json("Prometheus", self._settings.ports.prometheus, path, {"query": expression})
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def levels(self) -> Levels | None:
        """The levels at Prometheus's last scrape; None while one is missing."""
        own = f'instance="{self.instance}"'
        bodies = self._value(f"sum(trainer_bodies{{{own}}})")
        food = self._value(f'trainer_entities{{{own}, type="food_sources"}}')
        memory = self._value(f'trainer_process_resident_memory_bytes{{{own}, role="trainer"}}')
        return None if bodies is None or food is None or memory is None else Levels(bodies, food, memory)

    def alerts(self) -> list[dict[str, str]]:
        """Labels of this trainer's alerts on limits that request a cleanup, with `alertstate`."""
        chosen = f'instance="{self.instance}", action="cleanup", kind="threshold"'
        return [labels for labels, _ in self.query(f"ALERTS{{{chosen}}}")]

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

    def _json(self, who: str, port: int, path: str, parameters: Mapping[str, str]) -> Any:
        try:
            answer = self._client.get(self._settings.url(port) + path, params=parameters)
            answer.raise_for_status()
            return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise StackError(
                f"{who} does not answer on port {port} ({error}); is the stack up? heapwatch status"
            ) from error


def run(stack: Stack, settings: Settings, console: Console) -> None:
    """Run the demonstration once; StackError if a step fails. The trainer ends in any case."""
    if unhealthy := [row.service for row in stack.status() if not row.healthy]:
        raise StackError(f"unhealthy services ({', '.join(unhealthy)}): run heapwatch up first")
    try:
        with small_trainer(stack) as (trainer, instance):
            health.wait_scraped(settings, {"the demonstration's trainer": instance})
            _Demonstration(trainer, Loop(settings, instance), Narrator(console)).run()
    except KeyboardInterrupt:
        raise StackError("interrupted: the trainer has ended") from None


@contextmanager
def small_trainer(stack: Stack) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`heapwatch_stack.trainer` beside the stack, and its instance; its program ends with the context."""
    process = stack.start_trainer()
    try:
        assert process.stdout is not None
        answers, _, _ = select.select([process.stdout], [], [], STARTS_WITHIN)
        said = process.stdout.readline().strip() if answers else f"no output in {STARTS_WITHIN:.0f} s"
        if not said.isdigit():
            raise StackError(f"the demonstration's trainer did not start: {said or 'no output'}")
        yield process, stack.trainer_instance(int(said))
    finally:
        try:
            process.communicate(timeout=ENDS_WITHIN)  # closes its input, which ends it
        except subprocess.TimeoutExpired:
            process.kill()


class _Demonstration:
    """One run: each `_see_…` waits for one step of the loop and prints what it found."""

    def __init__(self, trainer: subprocess.Popen[str], loop: Loop, narrator: Narrator) -> None:
        self._trainer = trainer
        self._loop = loop
        self._tell = narrator.tell

    def run(self) -> None:
        before = self._wait("the trainer's first levels", self._loop.levels)
        self._tell("trainer", str(before))
        assert self._trainer.stdin is not None
        self._trainer.stdin.write("leak\n")
        self._trainer.stdin.flush()
        self._tell("leak", "bodies of dead robots, food and memory, until a cleanup")
        self._see_alert("pending")
        self._see_alert("firing")
        self._see_notified()
        action = self._see_cleanup()
        after = self._see_fall(before)
        self._see_verdict(action["request_id"])
        self._see_silence()
        self._tell("the loop closed", f": {before} → leak → cleanup → {after}", "bold green")

    def _see_alert(self, state: str) -> None:
        def reached() -> dict[str, str] | None:
            return next((alert for alert in self._loop.alerts() if alert["alertstate"] == state), None)

        self._tell("prometheus", f"{_name(self._wait(f'an alert that is {state}', reached))} is {state}")

    def _see_notified(self) -> None:
        alert = self._wait("Alertmanager's notification", lambda: next(iter(self._loop.notified()), None))
        self._tell("alertmanager", f"sends {_name(alert)} to the receiver")

    def _see_cleanup(self) -> dict[str, Any]:
        """Wait for the row of an answered cleanup."""

        def answered() -> dict[str, Any] | None:
            rows = (row for row in self._loop.actions() if row["action"])
            return next((row for row in rows if row["action"]["answered_at"]), None)

        row = self._wait("the receiver's cleanup", answered)
        action = dict(row["action"])
        self._tell("receiver", f"requested the {action['action']} cleanup: {plain(row['detail'], 500)}")
        removed = ", ".join(
            f"{count:,.0f} {plain(what, 500)}" for what, count in sorted(action["removed"].items()) if count
        )
        freed, took = (action["freed_bytes"] or 0) / 1e6, action["duration_seconds"] or 0
        self._tell(
            "trainer",
            f"cleaned up at its next safe point in {took:.2f} s: removed {removed};"
            f" {freed:,.0f} MB came back",
        )
        return action

    def _see_fall(self, before: Levels) -> Levels:
        """Wait until Prometheus has scraped the bodies of before, and the freed bytes."""

        def fallen() -> Levels | None:
            levels = self._loop.levels()
            return levels if levels and levels.bodies <= CALM * before.bodies and self._loop.freed() else None

        seen = self._wait("the fall of the bodies in Prometheus", fallen)
        freed = self._loop.freed() / 1e6
        self._tell("prometheus", f"scraped {seen}; trainer_cleanup_freed_bytes_total: {freed:,.0f} MB")
        return seen

    def _see_verdict(self, request_id: str) -> None:
        def judged() -> dict[str, Any] | None:
            rows = [row["action"] for row in self._loop.actions() if row["action"]]
            same = [action for action in rows if action["request_id"] == request_id and action["result"]]
            return dict(same[0]) if same else None

        action = self._wait("the receiver's verdict", judged)
        self._tell("receiver", f"its verdict: {action['result']} ({plain(action['detail'], 500)})")
        if action["result"] != "helped":
            raise StackError(f"the cleanup did not help: {action['result']}")

    def _see_silence(self) -> None:
        """Wait until the alerts that asked for the cleanup end, which takes minutes."""
        self._wait(
            "the end of the alerts that asked for the cleanup", lambda: not self._loop.alerts() or None
        )
        self._tell("prometheus", "no alert asks for a cleanup any more")

    def _wait(self, what: str, condition: Callable[[], T | None]) -> T:
        """Call `condition` every second until it returns something; say what it waits for."""
        began = time.monotonic()
        say_at = began + SAID_AFTER
        while (found := condition()) is None:
            now = time.monotonic()
            if now - began > PATIENCE:
                alerts = ", ".join(sorted({_name(alert) for alert in self._loop.alerts()})) or "none"
                raise StackError(
                    f"the demonstration failed: waited {PATIENCE} s for {what}; alerts: {alerts}"
                )
            if now >= say_at:
                say_at = now + SAID_AGAIN_AFTER
                self._tell(
                    "waits", f"for {what}; the trainer has {self._loop.levels() or 'no levels'}", "dim"
                )
            time.sleep(1)
        return found


def _name(alert: dict[str, str]) -> str:
    level = alert.get("level", alert.get("severity", ""))
    what = "/".join(alert[label] for label in ("resource", "component") if label in alert)
    return plain(f"{alert['alertname']} ({', '.join(filter(None, (what, level)))})", 500)
