"""The ledger: received alerts, decisions and actions. SQL on the store's connection."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import uuid4

from pydantic import BaseModel, Field

from heapwatch_receiver.decide import (
    Act,
    ActionName,
    Alert,
    AlertHistory,
    Past,
    Readings,
    Refuse,
    TrainerKey,
    on_sight,
)
from heapwatch_receiver.payload import WebhookAlert

_PAST = 50  # past actions that are read for one decision; there are three steps
# The oldest beyond these numbers go; each kind has its own, so that a flood of alerts ends no record of an
# action. A row has about a kilobyte.
KEPT_REFUSALS, KEPT_ACTIONS = 400_000, 100_000
State = Literal["decided", "requesting", "answered", "done"]
_ALERT = "id, received_at, fingerprint, starts_at, ends_at, status, labels"


class Action(BaseModel):
    """An action; `before` and `after` are the levels that the trainer measured, memory in bytes."""

    request_id: str = Field(default_factory=lambda: str(uuid4()))
    action: ActionName
    dry_run: bool
    url: str
    state: State = "decided"
    result: str | None = None
    detail: str = ""
    requests: int = 0
    decided_at: datetime
    answered_at: datetime | None = None
    finished_at: datetime | None = None
    freed_bytes: float | None = None
    removed: dict[str, float] = {}
    before: Readings = {}
    after: Readings = {}
    duration_seconds: float | None = None


def receive(connection: sqlite3.Connection, alerts: Sequence[WebhookAlert]) -> list[Refuse]:
    """Store a notification, with the decision on each alert that needs no history; returns the refusals."""
    now = time.time()
    refusals = []
    for entry in alerts:
        alert = Alert(
            0,
            now,
            entry.fingerprint,
            entry.startsAt.isoformat(),
            entry.ends_at,
            entry.status,
            entry.labels,
        )
        row = connection.execute(
            "INSERT INTO alerts (received_at, fingerprint, starts_at, ends_at, status, alertname, job,"
            " instance, urgent, labels, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                now, *alert.episode, alert.ends_at, alert.status, alert.labels.get("alertname", ""),
                *alert.trainer, alert.is_emergency, json.dumps(alert.labels),
                entry.annotations.get("summary", "")[:1000],
            ),
        )  # fmt: skip
        if refusal := on_sight(alert):
            decided(connection, row.lastrowid, refusal)
            refusals.append(refusal)
    return refusals


def beat(connection: sqlite3.Connection) -> None:
    """Store the time of the watchdog alert."""
    connection.execute("UPDATE heartbeat SET at=?", (time.time(),))


def trainers_with_work(connection: sqlite3.Connection) -> list[TrainerKey]:
    """Trainers that have an alert to decide or an action to finish."""
    rows = connection.execute(
        "SELECT job, instance FROM alerts WHERE decision IS NULL"
        " UNION SELECT job, instance FROM alerts WHERE state <> 'done'"
    )
    return [TrainerKey(*row) for row in rows]


def waiting(connection: sqlite3.Connection, trainer: TrainerKey, limit: int) -> list[Alert]:
    """The trainer's undecided alerts: emergencies first, then by time of receipt."""
    rows = connection.execute(
        f"SELECT {_ALERT} FROM alerts WHERE decision IS NULL AND job=? AND instance=?"
        " ORDER BY urgent DESC, id LIMIT ?",
        (*trainer, limit),
    )
    return [_alert(row) for row in rows]


def unfinished(connection: sqlite3.Connection, trainer: TrainerKey) -> list[tuple[Alert, Action]]:
    """Unfinished actions of the trainer with their alerts, oldest first."""
    rows = connection.execute(
        f"SELECT {_ALERT}, record FROM alerts WHERE state <> 'done' AND job=? AND instance=? ORDER BY id",
        trainer,
    )
    return [(_alert(row), Action.model_validate_json(row["record"])) for row in rows]


def history(connection: sqlite3.Connection, alert: Alert, *, dry_run: bool) -> AlertHistory:
    """The history that matters for the alert; what was done in a dry run counts in a dry run alone."""
    now = time.time()
    first_seen, last_end = connection.execute(
        "SELECT min(received_at), max(id) FILTER (WHERE status='resolved') FROM alerts"
        " WHERE fingerprint=? AND starts_at=?",
        alert.episode,
    ).fetchone()
    rows = connection.execute(
        "SELECT action, fingerprint, starts_at, decided_at, finished_at, result FROM alerts"
        " WHERE job=? AND instance=? AND action IS NOT NULL AND state='done' AND dry_run=?"
        " ORDER BY decided_at DESC LIMIT ?",
        (*alert.trainer, dry_run, _PAST),
    )
    (last_hour,) = connection.execute(
        "SELECT count(*) FROM alerts WHERE action <> 'notify' AND dry_run=? AND decided_at>?",
        (dry_run, now - 3600),
    ).fetchone()
    return AlertHistory(
        now=now,
        first_seen=first_seen,
        resolved_since=(last_end or 0) > alert.id,
        past=[
            Past(action, (fingerprint, starts_at), began, finished, refused=result == "refused")
            for action, fingerprint, starts_at, began, finished, result in rows
        ],
        actions_last_hour=last_hour,
    )


def act(connection: sqlite3.Connection, alert: Alert, decision: Act, action: Action) -> None:
    """Store the decision to act, with the action."""
    decided(connection, alert.id, decision)
    connection.execute(
        "UPDATE alerts SET action=?, dry_run=? WHERE id=?", (action.action, action.dry_run, alert.id)
    )
    save(connection, alert, action)


def save(connection: sqlite3.Connection, alert: Alert, action: Action) -> None:
    """Store how far an action has come."""
    finished = action.finished_at.timestamp() if action.finished_at else None
    connection.execute(
        "UPDATE alerts SET state=?, result=?, finished_at=?, record=? WHERE id=?",
        (action.state, action.result, finished, action.model_dump_json(), alert.id),
    )


def prune(connection: sqlite3.Connection) -> None:
    """Delete the oldest decisions beyond the numbers that are kept."""
    for kind, kept in (
        ("decision IS NOT NULL AND action IS NULL", KEPT_REFUSALS),
        ("state='done'", KEPT_ACTIONS),
    ):
        connection.execute(
            f"DELETE FROM alerts WHERE {kind} AND id <="
            f" (SELECT id FROM alerts WHERE {kind} ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (kept,),
        )


def _alert(row: sqlite3.Row) -> Alert:
    columns = {name: row[name] for name in _ALERT.split(", ")}
    return Alert(**columns | {"labels": json.loads(row["labels"])})


def decided(connection: sqlite3.Connection, alert_id: int | None, decision: Act | Refuse) -> None:
    """Store a decision."""
    connection.execute(
        "UPDATE alerts SET decided_at=?, decision=?, reason=?, detail=? WHERE id=?",
        (time.time(), decision.decision, decision.reason, decision.detail, alert_id),
    )
