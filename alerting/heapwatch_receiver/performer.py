"""Performs one action in steps, each of which is stored before the next.

    decided -> requesting -> answered -> done

After a crash, the action continues from the last stored state.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone

import httpx

from heapwatch.text.numbers import duration
from heapwatch_receiver import ledger, trainer
from heapwatch_receiver.decide import STALE_SECONDS, Alert, judge
from heapwatch_receiver.fetch import FetchError
from heapwatch_receiver.follow_up import EscalationError, notify, restart
from heapwatch_receiver.ledger import Action, State
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.prometheus import Prometheus
from heapwatch_receiver.settings import Settings
from heapwatch_receiver.store import Store, StoreUnavailable

log = logging.getLogger("heapwatch.receiver")

RETRY_SECONDS = 2.0  # before the first repetition; then twice as long each time, up to:
_LONGEST_PAUSE = 30.0
REQUEST_DEADLINE_SECONDS = 300.0  # a long step of a trainer; after that the alert repeats
CHECK_AFTER_SECONDS = 45.0  # three scrapes
CHECK_DEADLINE_SECONDS = 180.0  # for a restart of Prometheus

Outcome = tuple[str, str]  # the result of an action, and its details


@dataclass
class Performer:
    """Performs actions.

    A cleanup is requested again with the same request id until the trainer answers or the deadline passes.
    The trainer performs each request id once. A restart command has no such id and is run at most once.
    """

    settings: Settings
    store: Store
    client: httpx.AsyncClient
    prometheus: Prometheus
    metrics: Metrics
    token: str = field(repr=False)

    async def perform(self, alert: Alert, action: Action) -> None:
        """Perform the remaining steps of the action."""
        interrupted = action.state == "requesting"
        if action.state == "decided":
            age = time.time() - alert.received_at
            if age > STALE_SECONDS:
                return await self._finish(
                    alert, action, "failed", f"not begun within {duration(age)} of the alert"
                )
            if action.dry_run:
                return await self._finish(alert, action, "dry_run", "dry run: nothing was asked")
            await self._save(alert, action, "requesting")
        if action.action in ("notify", "restart"):
            outcome = await self._escalate(alert, action, interrupted)
        else:
            failure = await self._request(alert, action) if action.state == "requesting" else None
            outcome = failure or await self._check(alert, action)
        return await self._finish(alert, action, *outcome)

    async def _request(self, alert: Alert, action: Action) -> Outcome | None:
        """Send the request until it is answered; returns how it failed, if it did."""
        deadline = time.monotonic() + REQUEST_DEADLINE_SECONDS
        pause = RETRY_SECONDS
        while True:
            action.requests += 1
            try:
                answer = await trainer.force_cleanup(
                    self.client,
                    action.url,
                    self.token,
                    action=action.action,
                    reason=alert.labels.get("alertname", "alert"),
                    request_id=action.request_id,
                    target=alert.concerns,
                )
                if answer.status == "done":
                    await self._answered(alert, action, answer)
                    return None
                result, detail = "pending", answer.detail or "the trainer has reached no safe point"
            except FetchError as error:
                result, detail = "failed", str(error)
                if error.status == 403:  # it is configured to accept no cleanups, which is no failure
                    return "refused", detail
                if error.status and error.status < 500 and error.status != 429:
                    return "failed", detail
            if time.monotonic() + pause > deadline:
                return result, f"{detail} ({action.requests} requests)"
            log.info("%s of %s: %s; asking again in %.1f s", action.action, alert.trainer, detail, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _answered(self, alert: Alert, action: Action, answer: trainer.Answer) -> None:
        action.answered_at = _now()
        action.freed_bytes = answer.freed.resident_memory_bytes
        action.removed = answer.removed
        action.before, action.after = answer.before.readings(), answer.after.readings()
        action.duration_seconds = answer.duration_seconds
        action.detail = "; ".join(answer.errors[:5])
        await self._save(alert, action, "answered")

    async def _check(self, alert: Alert, action: Action) -> Outcome:
        """Judge the effect after the next scrapes."""
        await asyncio.sleep(CHECK_AFTER_SECONDS)
        deadline = time.monotonic() + CHECK_DEADLINE_SECONDS
        while (facts := await self.prometheus.facts(alert.trainer)) is None and time.monotonic() < deadline:
            await asyncio.sleep(RETRY_SECONDS)
        fires = None if facts is None else facts.fires(alert.labels)
        result, detail = judge(alert.labels, action.before, action.after, still_firing=fires)
        return result, f"{detail}; the cleanup reported: {action.detail}" if action.detail else detail

    async def _escalate(self, alert: Alert, action: Action, interrupted: bool) -> Outcome:
        try:
            if action.action == "notify":
                await notify(self.client, self.settings, alert, action.decided_at)
                return "notified", "posted TrainerCleanupEscalated to Alertmanager"
            if interrupted:
                return "failed", "the receiver was stopped while the command ran; it is not run twice"
            return "restarted", await restart(self.settings.restart_command, alert.trainer)
        except (FetchError, EscalationError) as error:
            return "failed", str(error)

    async def _finish(self, alert: Alert, action: Action, result: str, detail: str) -> None:
        action.result, action.detail, action.finished_at = result, detail, _now()
        await self._save(alert, action, "done")
        log.info("%s of %s: %s: %s", action.action, alert.trainer, result, detail)
        self.metrics.finished(action, action.finished_at.timestamp() - alert.received_at)

    async def _save(self, alert: Alert, action: Action, state: State) -> None:
        """Store the action in this state; returns when it is on disk."""
        action.state = state
        while True:
            try:
                return await self.store.run(lambda connection: ledger.save(connection, alert, action))
            except StoreUnavailable as error:
                log.error("database, saving the %s of %s: %s", action.action, alert.trainer, error)
                await asyncio.sleep(RETRY_SECONDS)


def _now() -> datetime:
    return datetime.now(timezone.utc)
