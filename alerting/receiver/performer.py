"""One action from decided to done; each step is on disk before the next, so that a crash resumes it."""

from __future__ import annotations

import asyncio
import logging

import httpx

from heapwatch.receiver import ledger, trainer
from heapwatch.receiver.annotate import annotate
from heapwatch.receiver.clock import Clock
from heapwatch.receiver.effect import judge
from heapwatch.receiver.escalate import EscalationError, notify, restart
from heapwatch.receiver.fetch import FetchError
from heapwatch.receiver.hooks import failpoint
from heapwatch.receiver.ledger import ActionRecord
from heapwatch.receiver.metrics import Metrics
from heapwatch.receiver.prometheus import Prometheus, Readings
from heapwatch.receiver.settings import Settings, secret
from heapwatch.receiver.store import Store, StoreUnavailable

log = logging.getLogger("heapwatch.receiver")
_LONGEST_PAUSE = 30.0


class _Failed(Exception):
    """The action ends here: the result and, as message, why."""

    def __init__(self, detail: str, result: str = "failed") -> None:
        super().__init__(detail)
        self.result = result


class Performer:
    """Carries actions out.

    A cleanup is asked for again, with the same request id, until the trainer answers or the deadline passes;
    the trainer does each request id once. A restart command is run at most once: it has no such id.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        client: httpx.AsyncClient,
        prometheus: Prometheus,
        metrics: Metrics,
        token: str,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._client = client
        self._prometheus = prometheus
        self._metrics = metrics
        self._token = token
        self._grafana_token = (
            secret(settings.grafana_token_file, "grafana_token_file") if settings.grafana_url else ""
        )

    async def perform(self, record: ActionRecord, *, resumed: bool) -> None:
        """Take the action through the states it has not passed yet."""
        failpoint("decided")
        try:
            if record.state == "decided":
                await self._begin(record)
                resumed = False
            if record.action in ("notify", "restart"):
                await self._escalate(record, resumed)
            else:
                if record.state == "requesting":
                    await self._request(record, resumed)
                await self._check(record)
        except _Failed as failure:
            await self._finish(record, failure.result, str(failure))

    async def _begin(self, record: ActionRecord) -> None:
        age = self._clock.steady() - record.received_steady
        if age > self._settings.stale_after:
            raise _Failed(f"not begun within {age:.0f} s of the alert", "called_off")
        if record.dry_run:
            raise _Failed("dry run: nothing was asked", "dry_run")
        try:
            readings = await self._prometheus.readings(record.trainer)
            record.process_start = readings.pop("process_start", None)
            record.before["prometheus"] = readings
        except FetchError as error:
            log.warning("no figures before the cleanup of %s: %s", record.trainer, error)
        record.state = "requesting"
        await self._save(record)
        failpoint("requesting")

    async def _request(self, record: ActionRecord, resumed: bool) -> None:
        """Ask until there is an answer; after a broken exchange, only if it is still the same process."""
        deadline = self._clock.steady() + self._settings.trainer_deadline
        pause = self._settings.retry_pause
        broken, pending, last = resumed, False, ""
        while True:
            wait = pause
            try:
                if broken:
                    await self._same_process(record)
                record.attempts += 1
                answer = await trainer.force_cleanup(
                    self._client,
                    record.url,
                    self._token,
                    action=record.action,
                    reason=record.labels.get("alertname", "alert"),
                    request_id=record.request_id,
                    timeout=self._settings.trainer_timeout,
                )
                failpoint("answer-read")
                if not answer.pending:
                    return await self._answered(record, answer)
                broken, pending, last = False, True, answer.detail or "the trainer has reached no safe point"
            except trainer.Refusal as refusal:
                if refusal.retry_after is None:
                    raise _Failed(refusal.detail, "refused" if refusal.by_choice else "failed") from None
                pending, last, wait = False, refusal.detail, max(pause, refusal.retry_after)
            except FetchError as error:
                broken, pending, last = True, False, str(error)
            if self._clock.steady() + wait > deadline:
                raise _Failed(f"{last} ({record.attempts} requests)", "pending" if pending else "failed")
            log.info("%s of %s: %s; asking again in %.1f s", record.action, record.trainer, last, wait)
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _same_process(self, record: ActionRecord) -> None:
        start = await trainer.process_start(self._client, record.url, self._settings.trainer_timeout)
        if start is not None and record.process_start is not None and abs(start - record.process_start) > 1:
            raise _Failed("the trainer restarted before it answered; the new process is not asked")

    async def _answered(self, record: ActionRecord, answer: trainer.Answer) -> None:
        record.state = "answered"
        record.answered_at = self._clock.wall()
        record.freed_bytes = answer.freed.resident_memory_bytes
        record.removed = dict(answer.removed)
        record.before["trainer"] = answer.before.readings()
        record.after["trainer"] = answer.after.readings()
        record.duration_seconds = answer.duration_seconds
        record.detail = "; ".join(answer.errors)
        await self._save(record)
        failpoint("answered")

    async def _check(self, record: ActionRecord) -> None:
        """Read the effect after the next scrapes; without Prometheus, by the trainer's figures alone."""
        await asyncio.sleep(self._settings.check_after)
        deadline = self._clock.steady() + self._settings.check_deadline
        firing: bool | None = None
        while firing is None and self._clock.steady() < deadline:
            try:
                readings: Readings = await self._prometheus.readings(record.trainer)
                readings.pop("process_start", None)
                firing = (await self._prometheus.facts(record.trainer)).fires(record.labels)
                record.after["prometheus"] = readings
            except FetchError as error:
                log.warning("no figures after the cleanup of %s yet: %s", record.trainer, error)
                await asyncio.sleep(self._settings.retry_pause)
        effect = judge(
            record.labels,
            {source: (before, record.after.get(source, {})) for source, before in record.before.items()},
            still_firing=firing,
            helped_fraction=self._settings.helped_fraction,
        )
        errors = f"; the cleanup reported: {record.detail}" if record.detail else ""
        failpoint("checked")
        await self._finish(record, effect.verdict, effect.detail + errors)

    async def _escalate(self, record: ActionRecord, resumed: bool) -> None:
        try:
            if record.action == "notify":
                lasts = self._settings.escalation_cooldown
                urls = (self._settings.alertmanager_url, self._settings.runbooks_url)
                await notify(self._client, *urls, record, lasts=lasts)
                failpoint("answer-read")
                return await self._finish(
                    record, "notified", "posted TrainerCleanupEscalated to Alertmanager"
                )
            if resumed:
                raise _Failed("the receiver was stopped while the command ran; it is not run twice")
            output = await restart(
                self._settings.restart_command, record.trainer, self._settings.restart_timeout
            )
            failpoint("answer-read")
            await self._finish(record, "restarted", output)
        except EscalationError as error:
            raise _Failed(str(error)) from None

    async def _finish(self, record: ActionRecord, result: str, detail: str) -> None:
        record.state, record.result, record.detail = "done", result, detail
        record.finished_at, record.finished_steady = self._clock.wall(), self._clock.steady()
        await self._save(record)
        failpoint("done")
        log.info("%s of %s: %s: %s", record.action, record.trainer, result, detail)
        self._metrics.finished(record, record.finished_steady - record.received_steady)
        if self._settings.grafana_url:
            try:
                await annotate(self._client, self._settings.grafana_url, self._grafana_token, record)
            except FetchError as error:
                self._metrics.annotation_errors.inc()
                log.warning("annotation: %s", error)

    async def _save(self, record: ActionRecord) -> None:
        """Write the row; nothing goes on before it is on disk."""
        while True:
            try:
                return await self._store.run(lambda connection: ledger.save(connection, record))
            except StoreUnavailable as error:
                log.error("database, saving the %s of %s: %s", record.action, record.trainer, error)
                await asyncio.sleep(self._settings.retry_pause)
