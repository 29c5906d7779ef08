"""Acts on the stored alerts: trainers concurrently, and one action at a time on each."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple

from heapwatch_receiver import ledger
from heapwatch_receiver.decide import Act, Alert, Facts, Refuse, TrainerKey, decide
from heapwatch_receiver.ledger import Action
from heapwatch_receiver.performer import RETRY_SECONDS, Performer
from heapwatch_receiver.store import StoreUnavailable

log = logging.getLogger("heapwatch.receiver")

PARALLEL_TRAINERS = 16  # a stuck trainer holds its place for minutes; each has one request in flight
_SWEEP_SECONDS = 5.0
_CHUNK = 100  # alerts that one transaction decides
_PRUNE_SECONDS = 600.0


class _Decided(NamedTuple):
    """What one transaction decided; `stuck`: the next alert waits for Prometheus."""

    refusals: list[Refuse]
    acting: tuple[Alert, Action] | None = None
    stuck: bool = False


class Worker:
    """Decides and acts on the ledger's alerts until it is stopped; after a restart it continues."""

    def __init__(self, performer: Performer) -> None:
        self._performer = performer
        self._settings = performer.settings
        self._store = performer.store
        self._wake = asyncio.Event()
        self._serving: dict[TrainerKey, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(PARALLEL_TRAINERS)

    def wake(self) -> None:
        """Signal that there is a new alert to decide."""
        self._wake.set()

    async def run(self) -> None:
        """Serve every trainer with waiting alerts or actions, until cancelled."""
        pruning = asyncio.create_task(self._prune())
        try:
            while True:
                self._wake.clear()
                try:
                    trainers = await self._store.run(ledger.trainers_with_work)
                except StoreUnavailable as error:
                    log.error("database: %s", error)
                    trainers = []
                for trainer in trainers:
                    if trainer not in self._serving:
                        task = asyncio.create_task(self._serve(trainer))
                        self._serving[trainer] = task
                        task.add_done_callback(partial(self._served, trainer))
                try:
                    await asyncio.wait_for(self._wake.wait(), _SWEEP_SECONDS)
                except asyncio.TimeoutError:
                    continue
        finally:
            tasks = [pruning, *self._serving.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _served(self, trainer: TrainerKey, _: asyncio.Task[None]) -> None:
        del self._serving[trainer]
        self._wake.set()  # an alert may have arrived after the last look

    async def _serve(self, trainer: TrainerKey) -> None:
        async with self._slots:
            try:
                for alert, action in await self._store.run(partial(ledger.unfinished, trainer=trainer)):
                    await self._performer.perform(alert, action)
                await self._decide_all(trainer)
            except StoreUnavailable as error:
                log.error("database: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("trainer %s: unexpected error, trying again", trainer)
                await asyncio.sleep(RETRY_SECONDS)

    async def _decide_all(self, trainer: TrainerKey) -> None:
        while True:
            facts = await self._performer.prometheus.facts(trainer)
            decided = await self._store.run(partial(self._decide, trainer, facts))
            self._performer.metrics.refused(decided.refusals)
            if decided.acting:
                await self._performer.perform(*decided.acting)
            elif decided.stuck:
                await asyncio.sleep(RETRY_SECONDS)
            elif len(decided.refusals) < _CHUNK:
                return

    def _decide(self, trainer: TrainerKey, facts: Facts | None, connection: sqlite3.Connection) -> _Decided:
        """Decide the trainer's alerts in turn, up to the first that needs facts or an action."""
        refusals: list[Refuse] = []
        for alert in ledger.waiting(connection, trainer, _CHUNK):
            history = ledger.history(connection, alert, dry_run=self._settings.dry_run)
            decision = decide(alert, history, facts, self._settings)
            if decision is None:
                return _Decided(refusals, stuck=True)
            if isinstance(decision, Act):
                action = Action(
                    action=decision.action,
                    dry_run=self._settings.dry_run,
                    url=decision.url,
                    decided_at=datetime.now(timezone.utc),
                )
                ledger.act(connection, alert, decision, action)
                return _Decided(refusals, (alert, action))
            ledger.decided(connection, alert.id, decision)
            refusals.append(decision)
        return _Decided(refusals)

    async def _prune(self) -> None:
        while True:
            try:
                await self._store.run(ledger.prune)
            except StoreUnavailable as error:
                log.error("database, while pruning: %s", error)
            await asyncio.sleep(_PRUNE_SECONDS)
