"""The demonstration: makes a running trainer leak, reports each service's reaction, checks the outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from rich.console import Console

from heapwatch.runtime.plain_text import plain
from heapwatch_stack.errors import StackError
from heapwatch_stack.loop import DemoLevels, Loop, Stack, Trainer, leaking_trainer
from heapwatch_stack.report import Narrator
from heapwatch_stack.settings import Settings

# A scrape sees the bodies below the first limit or above the last, not between them.
SECONDS_TO_LIMIT = 10
FOOD_PER_MINUTE = 600
MEGABYTES_PER_MINUTE = 200
PATIENCE = 420
RECEIVER_COOLDOWN = 600
CALM_FRACTION = 0.5
# Above the levels at the start this much counts as left over; the number of food items varies anyway.
BODIES_LEFT = 1.05
FOOD_LEFT = 15
CLEAN_AGAIN_SECONDS = 10.0
# A trainer on a busy machine reads its switches late, and levels are some seconds old.
CLEAN_SECONDS = 20.0
CLEAN_STEPS = 10
SAID_AFTER = 5.0
SAID_AGAIN_AFTER = 30.0
T = TypeVar("T")


def run(stack: Stack, settings: Settings, console: Console) -> None:
    """Run the demonstration once; StackError if a step fails. The leak is switched off in any case."""
    if unhealthy := [row.service for row in stack.status() if not row.healthy]:
        raise StackError(f"unhealthy services ({', '.join(unhealthy)}): run heapwatch up first")
    try:
        with leaking_trainer(stack, settings, lambda one: _cooldown_left(settings, one) > 0) as trainer:
            if (left := _cooldown_left(settings, trainer)) > 0:
                console.print(
                    f"The receiver cleaned up recently; waiting {left:.0f} s for the end of its cooldown."
                )
                time.sleep(left)
            _Demonstration(trainer, _loop(settings, trainer), Narrator(console)).run()
    except KeyboardInterrupt:
        raise StackError("interrupted: the leak is off") from None


def _loop(settings: Settings, trainer: Trainer) -> Loop:
    return Loop(settings, trainer.instance, trainer.port)


def _cooldown_left(settings: Settings, trainer: Trainer) -> float:
    """Seconds for which the receiver does not act on the trainer yet after a cleanup."""
    cooldown = float(os.environ.get("HEAPWATCH_RECEIVER_COOLDOWN") or RECEIVER_COOLDOWN)
    finished = [
        datetime.fromisoformat(row["action"]["finished_at"]).timestamp()
        for row in _loop(settings, trainer).actions()
        if row["action"] and row["action"]["finished_at"]
    ]
    return max(0.0, max(finished, default=0.0) + cooldown - time.time())


class _Demonstration:
    """One run: each `_see_…` waits for one step of the loop and prints what it found."""

    def __init__(self, trainer: Trainer, loop: Loop, narrator: Narrator) -> None:
        self._trainer = trainer
        self._loop = loop
        self._tell = narrator.tell
        self._known_rows = {row["id"] for row in loop.actions()}
        self._freed_before = loop.freed()
        self._fired_before = {_name(alert) for alert in loop.firing()}

    def run(self) -> None:
        before = self._loop.levels()
        limit = self._wait("the rules' limit", lambda: self._loop.limit("bodies", "all", "emergency"))
        rate = round((limit - before.bodies) / SECONDS_TO_LIMIT * 60, -1)
        self._tell("trainer", f"{before}; its emergency limit is {limit:,.0f} bodies")
        try:
            self._trainer.leak({"dynamic": rate, "food": FOOD_PER_MINUTE, "memory": MEGABYTES_PER_MINUTE})
            self._tell(
                "leak",
                f"on: {rate:,.0f} bodies of dead robots, {FOOD_PER_MINUTE} food and"
                f" {MEGABYTES_PER_MINUTE} MB a minute",
            )
            self._see_alert("pending", self._loop.alerts)
            self._see_alert("firing", self._loop.alerts)
            self._see_notified()
            done = self._see_action()
        finally:
            self._trainer.leak({})
            self._tell("leak", "off")
        self._see_cleanup(done)
        self._see_leftovers_gone(before)
        after = self._see_fall(before.bodies, limit)
        self._see_verdict(done["request_id"])
        self._see_silence()
        self._tell("the loop closed", f": {before} → leak → cleanup → {after}", "bold green")

    def _see_alert(self, state: str, source: Callable[[], list[dict[str, str]]]) -> None:
        def reached() -> dict[str, str] | None:
            matching = [alert for alert in source() if alert["alertstate"] == state]
            return matching[0] if matching else None

        alert = self._wait(f"an alert that is {state}", reached)
        self._tell("prometheus", f"{_name(alert)} is {state}")

    def _see_notified(self) -> None:
        alert = self._wait("Alertmanager's notification", lambda: next(iter(self._loop.notified()), None))
        self._tell("alertmanager", f"sends {_name(alert)} to the receiver")

    def _see_action(self) -> dict[str, Any]:
        """Wait for the row of an answered cleanup, and report refusals meanwhile."""
        refused: set[int] = set()

        def answered() -> dict[str, Any] | None:
            for row in reversed(self._loop.actions()):
                if row["id"] in self._known_rows | refused:
                    continue
                if row["action"] and row["action"]["answered_at"]:
                    return dict(row)
                if row["decision"] == "suppress":
                    refused.add(row["id"])
                    refusal = f"leaves {row['alertname']} alone: {row['detail']}"
                    self._tell("receiver", refusal)
            return None

        row = self._wait("the receiver's cleanup", answered)
        action = dict(row["action"])
        self._tell("receiver", f"requested the {action['action']} cleanup: {plain(row['detail'], 500)}")
        return action

    def _see_cleanup(self, action: dict[str, Any]) -> None:
        removed = ", ".join(
            f"{count:,.0f} {plain(what, 500)}" for what, count in sorted(action["removed"].items()) if count
        )
        freed = (action["freed_bytes"] or 0) / 1e6
        took = action["duration_seconds"] or 0
        self._tell(
            "trainer",
            f"cleaned up at its next safe point in {took:.2f} s: removed {removed};"
            f" {freed:,.0f} MB came back",
        )

    def _see_leftovers_gone(self, before: DemoLevels) -> None:
        """Clean up the other leaked resources, and what leaked after the receiver's cleanup.

        They are gone if nothing returns for a while in which the trainer continues.
        """
        asked_at = float("-inf")
        gone_since: tuple[float, float] | None = None

        def gone() -> DemoLevels | None:
            nonlocal asked_at, gone_since
            now = self._loop.levels()
            if now.bodies <= BODIES_LEFT * before.bodies and now.food <= before.food + FOOD_LEFT:
                since, steps = gone_since = gone_since or (time.monotonic(), now.steps)
                stable = time.monotonic() - since >= CLEAN_SECONDS and now.steps - steps >= CLEAN_STEPS
                return now if stable else None
            gone_since = None
            if time.monotonic() - asked_at > CLEAN_AGAIN_SECONDS:
                self._tell("trainer", f"still holds {now}: cleans up again")
                self._loop.clean("emergency")
                asked_at = time.monotonic()
            return None

        left = self._wait("the end of what leaked", gone)
        self._tell("trainer", f"has nothing left of the leak: {left}")

    def _see_fall(self, healthy: float, limit: float) -> str:
        """Wait until Prometheus has scraped fewer bodies and the freed bytes."""
        calm = healthy + CALM_FRACTION * (limit - healthy)

        def fallen() -> str | None:
            levels = self._loop.recorded()
            counted = self._loop.freed() > self._freed_before
            return str(levels) if levels and levels.bodies < calm and counted else None

        seen = self._wait("the fall of the bodies in Prometheus", fallen)
        freed = (self._loop.freed() - self._freed_before) / 1e6
        self._tell("prometheus", f"scraped {seen}; trainer_cleanup_freed_bytes_total: {freed:,.0f} MB more")
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

        def asking() -> set[str]:
            return {_name(alert) for alert in self._loop.alerts()}

        self._wait("the end of the alerts that asked for the cleanup", lambda: not asking() or None, asking)
        self._tell("prometheus", "no alert asks for a cleanup any more")
        if held := sorted({_name(alert) for alert in self._loop.firing()} - self._fired_before):
            self._tell("prometheus", f"the rules hold for some minutes: {', '.join(held)}")

    def _wait(self, what: str, condition: Callable[[], T | None], left: Callable[[], set[str]] = set) -> T:
        """Call `condition` every second until it returns something; say what it waits for.

        `left` names what is still there, for the error after a timeout.
        """
        began = time.monotonic()
        say_at = began + SAID_AFTER
        while (found := condition()) is None:
            now = time.monotonic()
            if now - began > PATIENCE:
                waited_for = ": ".join(filter(None, (what, ", ".join(sorted(left())))))
                raise StackError(f"the demonstration failed: waited {PATIENCE} s for {waited_for}")
            if now >= say_at:
                say_at = now + SAID_AGAIN_AFTER
                self._tell("waits", f"for {what}; the trainer has {self._loop.levels()}", "dim")
            time.sleep(1)
        return found


def _name(alert: dict[str, str]) -> str:
    level = alert.get("level", alert.get("severity", ""))
    what = "/".join(alert[label] for label in ("resource", "component") if label in alert)
    return plain(f"{alert['alertname']} ({', '.join(filter(None, (what, level)))})", 500)
