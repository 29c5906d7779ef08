"""Acts on the stored alerts: trainers concurrently, and one action at a time on each."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import uuid
from dataclasses import dataclass, field
from functools import partial

from heapwatch_receiver import ledger
from heapwatch_receiver.decide import Act, Alert, Ask, Facts, Refuse, Wait, decide
from heapwatch_receiver.fetch import FetchError
from heapwatch_receiver.ledger import ActionRecord, TrainerKey
from heapwatch_receiver.performer import Performer, failpoint
from heapwatch_receiver.store import StoreUnavailable

log = logging.getLogger("heapwatch.receiver")

_SWEEP_SECONDS = 5.0
_GATHER_SECONDS = 0.02
_CHUNK = 100
_PRUNE_SECONDS = 600.0
_SIDE_SHARE = 4  # at most one in this number of concurrently served trainers may be an unscraped one


@dataclass
class _Outcome:
    """The outcome of one transaction of decisions."""

    refusals: list[Refuse] = field(default_factory=list)
    record: ActionRecord | None = None
    undecided: Ask | Wait | None = None
    more: bool = False


class Worker:
    """Decides and acts on the ledger's alerts until it is stopped; after a restart it continues."""

    def __init__(self, performer: Performer) -> None:
        self._performer = performer
        self._prometheus = performer.prometheus
        self._settings = performer.settings
        self._store = performer.store
        self._clock = performer.clock
        self._wake = asyncio.Event()
        self._serving: dict[TrainerKey, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(self._settings.parallel_trainers)
        # Thousands of alerts about unscraped trainers must not delay one about a scraped trainer.
        self._side_slots = asyncio.Semaphore(max(1, self._settings.parallel_trainers // _SIDE_SHARE))

    def wake(self) -> None:
        """Signal that there is a new alert to decide."""
        self._wake.set()

    async def run(self) -> None:
        """Serve every trainer with waiting alerts or actions, until cancelled."""
        pruning = asyncio.create_task(self._prune())
        try:
            while True:
                await self._dispatch()
                try:
                    await asyncio.wait_for(self._wake.wait(), _SWEEP_SECONDS)
                except asyncio.TimeoutError:
                    continue
                await asyncio.sleep(_GATHER_SECONDS)
        finally:
            tasks = [pruning, *self._serving.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _dispatch(self) -> None:
        self._wake.clear()
        try:
            trainers = await self._store.run(ledger.trainers_with_work)
        except StoreUnavailable as error:
            log.error("database: %s", error)
            return
        fresh = [trainer for trainer in trainers if trainer not in self._serving]
        if len(fresh) > self._settings.parallel_trainers:
            try:
                await self._prometheus.refresh()
            except FetchError as error:
                log.warning("Prometheus: %s", error)
        for trainer in fresh:
            task = asyncio.create_task(self._serve(trainer))
            self._serving[trainer] = task
            task.add_done_callback(partial(self._served, trainer))

    def _served(self, trainer: TrainerKey, _: asyncio.Task[None]) -> None:
        del self._serving[trainer]
        self._wake.set()  # an alert may have arrived after the last query

    async def _serve(self, trainer: TrainerKey) -> None:
        async with self._slots if self._prometheus.scrapes(trainer) else self._side_slots:
            try:
                for record in await self._store.run(
                    lambda connection: ledger.unfinished(connection, trainer)
                ):
                    await self._performer.perform(record, resumed=True)
                await self._decide_all(trainer)
            except StoreUnavailable as error:
                log.error("database: %s", error)
                await asyncio.sleep(self._settings.retry_pause)
            except Exception:
                log.exception("trainer %s: unexpected error, trying again", trainer)
                await asyncio.sleep(self._settings.retry_pause)

    async def _decide_all(self, trainer: TrainerKey) -> None:
        facts: Facts | None = None
        pause = self._settings.retry_pause
        while True:
            outcome = await self._store.run(partial(self._decide, trainer, facts))
            facts = None
            self._performer.metrics.refused(outcome.refusals)
            if outcome.record:
                await self._performer.perform(outcome.record, resumed=False)
            elif outcome.undecided:
                if isinstance(outcome.undecided, Wait):
                    await asyncio.sleep(self._settings.retry_pause)
                try:
                    facts = await self._prometheus.facts(trainer)
                    pause = self._settings.retry_pause
                except FetchError as error:
                    log.warning("Prometheus, about %s: %s", trainer, error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 30.0)
            elif not outcome.more:
                return

    def _decide(self, trainer: TrainerKey, facts: Facts | None, connection: sqlite3.Connection) -> _Outcome:
        """Decide the trainer's alerts in turn, up to the first that needs facts or an action."""
        outcome = _Outcome()
        alerts = ledger.waiting(connection, trainer, _CHUNK)
        outcome.more = len(alerts) == _CHUNK
        for alert in alerts:
            known = ledger.history(connection, alert, trainer, self._clock, self._settings)
            decision = decide(alert, known, facts, self._settings)
            if isinstance(decision, Refuse):
                ledger.refuse(connection, alert, decision, self._clock)
                outcome.refusals.append(decision)
            elif isinstance(decision, Ask | Wait):
                outcome.undecided = decision
                break
            else:
                outcome.record = self._record(alert, trainer, decision, facts)
                ledger.act(connection, alert, decision, outcome.record, self._clock)
                failpoint("deciding")
                break
        return outcome

    def _record(self, alert: Alert, trainer: TrainerKey, decision: Act, facts: Facts | None) -> ActionRecord:
        return ActionRecord(
            request_id=str(uuid.uuid4()),
            alert_id=alert.id,
            fingerprint=alert.fingerprint,
            starts_at=alert.starts_at,
            trainer_job=trainer.job,
            trainer_instance=trainer.instance,
            labels=dict(alert.labels),
            action=decision.action,
            dry_run=self._settings.dry_run,
            received_steady=alert.steady,
            steady=self._clock.steady(),
            decided_at=self._clock.wall(),
            url=(facts.target if facts else None) or "",
        )

    async def _prune(self) -> None:
        while True:
            try:
                while await self._store.run(
                    lambda connection: ledger.prune(connection, self._clock, self._settings)
                ):
                    await asyncio.sleep(0.1)
            except StoreUnavailable as error:
                log.error("database, while pruning: %s", error)
            await asyncio.sleep(_PRUNE_SECONDS)
