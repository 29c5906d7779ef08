"""Performs one action in steps. Each step returns the next state, which is stored before the next step.

    decided -> requesting -> answered -> done

After a crash, the action continues from the last stored state. Any step may end it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import dataclass, field
from typing import Literal

import httpx

from heapwatch_receiver import ledger, trainer
from heapwatch_receiver.clock import Clock
from heapwatch_receiver.decide import Readings, judge
from heapwatch_receiver.fetch import FetchError
from heapwatch_receiver.follow_up import EscalationError, annotate, notify, restart
from heapwatch_receiver.ledger import ActionRecord
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.prometheus import Prometheus
from heapwatch_receiver.settings import Settings, secret
from heapwatch_receiver.store import Store, StoreUnavailable

log = logging.getLogger("heapwatch.receiver")
_LONGEST_PAUSE = 30.0
_failpoint = os.environ.get("HEAPWATCH_RECEIVER_TEST_FAILPOINT")
_RESTARTED = "the trainer restarted before it answered; the new process gets no request"


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL when the environment names this point, as the fault tests do."""
    if _failpoint == name:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Ended:
    """The state after the last step: the result of the action and its details."""

    result: str
    detail: str


State = Literal["requesting", "answered"] | Ended


@dataclass
class Performer:
    """Performs actions.

    A cleanup is requested again with the same request id until the trainer answers or the deadline passes.
    The trainer performs each request id once. A restart command has no such id and is run at most once.
    """

    settings: Settings
    store: Store
    clock: Clock
    client: httpx.AsyncClient
    prometheus: Prometheus
    metrics: Metrics
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        named = self.settings.grafana_token_file
        self._grafana_token = secret(named, "grafana_token_file") if self.settings.grafana_url else ""

    async def perform(self, record: ActionRecord, *, resumed: bool) -> None:
        """Perform the remaining steps of the action."""
        failpoint("decided")
        while record.state != "done":
            state = await self._step(record, resumed)
            if isinstance(state, Ended):
                await self._finish(record, state)
            else:
                record.state = state
                await self._save(record)
                failpoint(state)
            resumed = False

    async def _step(self, record: ActionRecord, resumed: bool) -> State:
        if record.state == "decided":
            return await self._begin(record)
        if record.action in ("notify", "restart"):
            return await self._escalate(record, resumed)
        if record.state == "requesting":
            return await self._request(record, resumed)
        return await self._check(record)

    async def _begin(self, record: ActionRecord) -> State:
        age = self.clock.steady() - record.received_steady
        if age > self.settings.stale_after:
            return Ended("called_off", f"not begun within {age:.0f} s of the alert")
        if record.dry_run:
            return Ended("dry_run", "dry run: nothing was asked")
        try:
            readings = await self.prometheus.readings(record.trainer)
            record.process_start = readings.pop("process_start", None)
            record.before["prometheus"] = readings
        except FetchError as error:
            log.warning("no figures before the cleanup of %s: %s", record.trainer, error)
        return "requesting"

    async def _request(self, record: ActionRecord, resumed: bool) -> State:
        """Send the request until it is answered; after a broken exchange only if the process is the same."""
        deadline = self.clock.steady() + self.settings.trainer_deadline
        pause = self.settings.retry_pause
        broken, pending, last = resumed, False, ""
        while True:
            wait = pause
            try:
                if broken and await self._restarted(record):
                    return Ended("failed", _RESTARTED)
                record.attempts += 1
                answer = await trainer.force_cleanup(
                    self.client,
                    record.url,
                    self.token,
                    action=record.action,
                    reason=record.labels.get("alertname", "alert"),
                    request_id=record.request_id,
                    timeout=self.settings.trainer_timeout,
                    target=record.concerns,
                )
                failpoint("answer-read")
                if not answer.pending:
                    return self._answered(record, answer)
                broken, pending, last = False, True, answer.detail or "the trainer has reached no safe point"
            except trainer.CleanupRefused as refusal:
                if refusal.retry_after is None:
                    return Ended("refused" if refusal.by_choice else "failed", refusal.detail)
                pending, last, wait = False, refusal.detail, max(pause, refusal.retry_after)
            except FetchError as error:
                broken, pending, last = True, False, str(error)
            if self.clock.steady() + wait > deadline:
                return Ended("pending" if pending else "failed", f"{last} ({record.attempts} requests)")
            log.info("%s of %s: %s; asking again in %.1f s", record.action, record.trainer, last, wait)
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _restarted(self, record: ActionRecord) -> bool:
        start = await trainer.process_start(self.client, record.url, self.settings.trainer_timeout)
        if start is None or record.process_start is None:
            return False
        return abs(start - record.process_start) > 1

    def _answered(self, record: ActionRecord, answer: trainer.Answer) -> State:
        record.answered_at = self.clock.wall()
        record.freed_bytes = answer.freed.resident_memory_bytes
        record.removed = dict(answer.removed)
        record.before["trainer"] = answer.before.readings()
        record.after["trainer"] = answer.after.readings()
        record.duration_seconds = answer.duration_seconds
        record.detail = "; ".join(answer.errors)
        return "answered"

    async def _check(self, record: ActionRecord) -> State:
        """Judge the effect after the next scrapes; without Prometheus, from the trainer's values alone."""
        await asyncio.sleep(self.settings.check_after)
        deadline = self.clock.steady() + self.settings.check_deadline
        firing: bool | None = None
        while firing is None and self.clock.steady() < deadline:
            try:
                readings: Readings = await self.prometheus.readings(record.trainer)
                readings.pop("process_start", None)
                firing = (await self.prometheus.facts(record.trainer)).fires(record.labels)
                record.after["prometheus"] = readings
            except FetchError as error:
                log.warning("no figures after the cleanup of %s yet: %s", record.trainer, error)
                await asyncio.sleep(self.settings.retry_pause)
        effect = judge(
            record.labels,
            {source: (before, record.after.get(source, {})) for source, before in record.before.items()},
            still_firing=firing,
            helped_fraction=self.settings.helped_fraction,
        )
        errors = f"; the cleanup reported: {record.detail}" if record.detail else ""
        failpoint("checked")
        return Ended(effect.verdict, effect.detail + errors)

    async def _escalate(self, record: ActionRecord, resumed: bool) -> State:
        settings = self.settings
        try:
            if record.action == "notify":
                await notify(self.client, settings, record)
                done = Ended("notified", "posted TrainerCleanupEscalated to Alertmanager")
            elif resumed:
                return Ended("failed", "the receiver was stopped while the command ran; it is not run twice")
            else:
                output = await restart(settings.restart_command, record.trainer, settings.restart_timeout)
                done = Ended("restarted", output)
        except EscalationError as error:
            return Ended("failed", str(error))
        failpoint("answer-read")
        return done

    async def _finish(self, record: ActionRecord, ended: Ended) -> None:
        record.state, record.result, record.detail = "done", ended.result, ended.detail
        record.finished_at, record.finished_steady = self.clock.wall(), self.clock.steady()
        await self._save(record)
        failpoint("done")
        log.info("%s of %s: %s: %s", record.action, record.trainer, record.result, record.detail)
        self.metrics.finished(record, record.finished_steady - record.received_steady)
        if self.settings.grafana_url:
            try:
                await annotate(self.client, self.settings.grafana_url, self._grafana_token, record)
            except FetchError as error:
                self.metrics.annotation_errors.inc()
                log.warning("annotation: %s", error)

    async def _save(self, record: ActionRecord) -> None:
        """Store the row; returns when it is on disk."""
        while True:
            try:
                return await self.store.run(lambda connection: ledger.save(connection, record))
            except StoreUnavailable as error:
                log.error("database, saving the %s of %s: %s", record.action, record.trainer, error)
                await asyncio.sleep(self.settings.retry_pause)
