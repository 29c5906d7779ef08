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

from heapwatch.text.numbers import size
from heapwatch.text.terminal import plain
from heapwatch_stack import health
from heapwatch_stack.compose import ComposeStack
from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.report import Narrator
from heapwatch_stack.settings import Settings

PATIENCE = 420
CALM = 1.05  # of the bodies before
STARTS_WITHIN = 120.0
ENDS_WITHIN = 20
T = TypeVar("T")
Stack = NativeStack | ComposeStack


@dataclass(frozen=True)
class Levels:
    """What the demonstration makes leak; memory is resident bytes."""

    bodies: float
    memory: float

    def __str__(self) -> str:
        return f"{self.bodies:,.0f} bodies, {size(self.memory)}"


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
        answer = self._json("prometheus", path, {"query": expression})
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def levels(self) -> Levels | None:
        """The levels at Prometheus's last scrape; None while one is missing."""
        own = f'instance="{self.instance}"'
        bodies = self._value(f"sum(trainer_bodies{{{own}}})")
        memory = self._value(f'trainer_process_resident_memory_bytes{{{own}, role="trainer"}}')
        return None if bodies is None or memory is None else Levels(bodies, memory)

    def firing(self) -> list[str]:
        """The trainer's alerts on limits that request a cleanup, by name and component."""
        chosen = f'instance="{self.instance}", action="cleanup", kind="threshold", alertstate="firing"'
        return sorted({_name(labels) for labels, _ in self.query(f"ALERTS{{{chosen}}}")})

    def notified(self) -> list[str]:
        """The same alerts that are active in Alertmanager."""
        parameters = {"filter": 'action="cleanup"', "active": "true"}
        listed = self._json("alertmanager", "/api/v2/alerts", parameters)
        return [_name(one["labels"]) for one in listed if one["labels"].get("instance") == self.instance]

    def actions(self) -> list[dict[str, Any]]:
        """The cleanups that the receiver requested of this trainer, newest first."""
        parameters = {"instance": self.instance, "limit": "100"}
        rows = self._json("receiver", "/actions", parameters)["rows"]
        return [row["action"] for row in rows if row["action"]]

    def freed(self) -> float:
        """Bytes freed by cleanups of this trainer, at Prometheus's last scrape."""
        return self._value(f'sum(trainer_cleanup_freed_bytes_total{{instance="{self.instance}"}})') or 0.0

    def _value(self, expression: str) -> float | None:
        return next((value for _, value in self.query(expression)), None)

    def _json(self, service: str, path: str, parameters: Mapping[str, str]) -> Any:
        try:
            answer = self._client.get(self._settings.url(service) + path, params=parameters)
            return answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise StackError(f"{service} does not answer ({error}): heapwatch status") from error


def run(stack: Stack, settings: Settings, console: Console) -> None:
    """Run the demonstration once; StackError if a step fails. The trainer ends in any case."""
    if unhealthy := [row.service for row in stack.status() if not row.healthy]:
        raise StackError(f"unhealthy services ({', '.join(unhealthy)}): run heapwatch up first")
    try:
        with small_trainer(stack) as (trainer, instance):
            health.wait_scraped(settings, {"the demonstration's trainer": instance})
            Demonstration(Loop(settings, instance), Narrator(console)).run(trainer)
    except KeyboardInterrupt:
        raise StackError("interrupted: the trainer has ended") from None


@contextmanager
def small_trainer(stack: Stack) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`heapwatch_stack.trainer` beside the stack, and its instance; its program ends with the context."""
    process = stack.start_trainer()
    try:
        assert process.stdout is not None
        answers, _, _ = select.select([process.stdout], [], [], STARTS_WITHIN)
        line = process.stdout.readline().strip() if answers else f"no output in {STARTS_WITHIN:.0f} s"
        if not line.isdigit():
            raise StackError(f"the demonstration's trainer did not start: {line or 'no output'}")
        yield process, stack.trainer_instance(int(line))
    finally:
        try:
            process.communicate(timeout=ENDS_WITHIN)  # closes its input, which ends it
        except subprocess.TimeoutExpired:
            process.kill()


class Demonstration:
    """Follows one leak through the services, and says what each of them does."""

    def __init__(self, loop: Loop, narrator: Narrator) -> None:
        self._loop = loop
        self._tell = narrator.tell

    def run(self, trainer: subprocess.Popen[str]) -> None:
        """From the leak to the end of its alerts; StackError for a step that does not happen."""
        loop, tell = self._loop, self._tell
        before = self.wait("the trainer's first levels", loop.levels)
        tell("trainer", str(before))
        assert trainer.stdin is not None
        trainer.stdin.write("leak\n")
        trainer.stdin.flush()
        tell("leak", "bodies of dead robots, and memory, until a cleanup")
        tell("prometheus", f"{self.wait('an alert that fires', loop.firing)[0]} is firing")
        alert = self.wait("Alertmanager's notification", loop.notified)[0]
        tell("alertmanager", f"sends {alert} to the receiver")
        done = self.wait("the receiver's cleanup", lambda: self._action("answered_at"))
        removed = ", ".join(
            f"{n:,.0f} {plain(what, 500)}" for what, n in sorted(done["removed"].items()) if n
        )
        tell(
            "trainer",
            f"ran the {done['action']} cleanup at its next safe point: removed {removed};"
            f" {size(done['freed_bytes'] or 0)} came back",
        )
        after = self.wait("the fall of the bodies in Prometheus", lambda: self._fallen(before))
        tell("prometheus", f"scraped {after}; {size(loop.freed())} freed by cleanups")
        judged = self.wait("the receiver's verdict", lambda: self._action("result"))
        tell("receiver", f"its verdict: {judged['result']} ({plain(judged['detail'], 500)})")
        if judged["result"] != "helped":
            raise StackError(f"the cleanup did not help: {judged['result']}")
        self.wait("the end of the alerts", lambda: not loop.firing())
        tell("the loop closed", f": {before} → leak → cleanup → {after}", "bold green")

    def _action(self, field: str) -> dict[str, Any] | None:
        """The first cleanup, once this is known of it."""
        return next((action for action in reversed(self._loop.actions()) if action[field]), None)

    def _fallen(self, before: Levels) -> Levels | None:
        """The levels, once Prometheus has scraped the bodies of before and the freed bytes."""
        levels = self._loop.levels()
        return levels if levels and levels.bodies <= CALM * before.bodies and self._loop.freed() else None

    def wait(self, what: str, condition: Callable[[], T | None]) -> T:
        """Ask every second until the answer is true, and say so if it is not at once."""
        deadline = time.monotonic() + PATIENCE
        if not (result := condition()):
            self._tell("waits", f"for {what}", "dim")
        while not result:
            if time.monotonic() > deadline:
                raise StackError(
                    f"the demonstration failed: waited {PATIENCE} s for {what};"
                    f" alerts: {', '.join(self._loop.firing()) or 'none'}"
                )
            time.sleep(1)
            result = condition()
        return result


def _name(alert: Mapping[str, str]) -> str:
    return plain(f"{alert['alertname']} ({alert['resource']}/{alert['component']})", 500)
