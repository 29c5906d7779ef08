"""The ledger: received alerts, decisions and actions. SQL on the store's connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from heapwatch_receiver.clock import Clock
from heapwatch_receiver.decide import Act, Alert, AlertHistory, Past, Refuse, is_emergency, on_sight
from heapwatch_receiver.payload import WebhookAlert
from heapwatch_receiver.settings import Settings

_PAST = 50  # past actions that are read for one decision; there are three steps


class DamagedCell(Exception):
    """A cell does not hold what was written."""


def mapping(cell: Any) -> dict[str, Any]:
    """The JSON object in a cell.

    Raises:
        DamagedCell: it holds no JSON object.

    """
    try:
        found = json.loads(cell)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedCell(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DamagedCell(f"a JSON object was written, {type(found).__name__} is there")
    return found


@dataclass(frozen=True)
class TrainerKey:
    """A trainer as Prometheus labels it."""

    job: str
    instance: str


@dataclass
class ActionRecord:
    """One row of `actions`; `store.SCHEMA` has the states and the units."""

    request_id: str
    alert_id: int
    fingerprint: str
    starts_at: int
    trainer_job: str
    trainer_instance: str
    labels: dict[str, str]
    action: str
    dry_run: bool
    received_steady: float
    steady: float
    decided_at: float
    url: str = ""
    state: str = "decided"
    process_start: float | None = None
    attempts: int = 0
    answered_at: float | None = None
    finished_at: float | None = None
    finished_steady: float | None = None
    result: str | None = None
    detail: str = ""
    freed_bytes: float | None = None
    removed: dict[str, float] = field(default_factory=dict)
    before: dict[str, dict[str, float]] = field(default_factory=dict)
    after: dict[str, dict[str, float]] = field(default_factory=dict)
    duration_seconds: float | None = None

    @property
    def trainer(self) -> TrainerKey:
        """The trainer of this action."""
        return TrainerKey(self.trainer_job, self.trainer_instance)

    @property
    def concerns(self) -> dict[str, str]:
        """The labels that say which resource the alert is about."""
        return {name: self.labels[name] for name in ("resource", "component") if name in self.labels}


_JSON_COLUMNS = ("labels", "removed", "before", "after")
_COLUMNS = tuple(column.name for column in fields(ActionRecord))
_VALUES = ", ".join(f":{name}" for name in _COLUMNS)
_SAVE = f"INSERT OR REPLACE INTO actions ({', '.join(_COLUMNS)}) VALUES ({_VALUES})"


def receive(connection: sqlite3.Connection, alerts: Sequence[WebhookAlert], clock: Clock) -> list[Refuse]:
    """Store a notification, with the decision on each alert that needs no history; returns the refusals."""
    wall, steady = clock.wall(), clock.steady()
    rows, refusals = [], []
    for alert in alerts:
        seen = Alert(0, alert.fingerprint, alert.starts_at, alert.ends_at, alert.status, alert.labels, steady)
        refusal = on_sight(seen)
        if refusal:
            refusals.append(refusal)
        rows.append(
            (
                wall, steady, alert.fingerprint, alert.starts_at, alert.ends_at, alert.status,
                *(alert.labels.get(name, "") for name in ("alertname", "job", "instance")),
                is_emergency(alert.labels), json.dumps(alert.labels),
                alert.annotations.get("summary", "")[:1000],
                *((wall, refusal.decision, refusal.reason, refusal.detail) if refusal else (None,) * 4),
            )
        )  # fmt: skip
    connection.executemany(
        "INSERT INTO alerts (received_at, steady, fingerprint, starts_at, ends_at, status, alertname,"
        " trainer_job, trainer_instance, urgent, labels, summary, decided_at, decision, reason, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    return refusals


def beat(connection: sqlite3.Connection, clock: Clock) -> None:
    """Store the time of the watchdog alert."""
    connection.execute("UPDATE clock SET watchdog_at=?", (clock.wall(),))


def trainers_with_work(connection: sqlite3.Connection) -> list[TrainerKey]:
    """Trainers that have an alert to decide or an action to finish."""
    rows = connection.execute(
        "SELECT DISTINCT trainer_job, trainer_instance FROM alerts WHERE decision IS NULL"
        " UNION SELECT trainer_job, trainer_instance FROM actions WHERE state <> 'done'"
    )
    return [TrainerKey(*row) for row in rows]


def waiting(connection: sqlite3.Connection, trainer: TrainerKey, limit: int) -> list[Alert]:
    """The trainer's undecided alerts: emergencies first, then by time of receipt."""
    rows = connection.execute(
        "SELECT id, fingerprint, starts_at, ends_at, status, labels, steady FROM alerts"
        " WHERE decision IS NULL AND trainer_job=? AND trainer_instance=? ORDER BY urgent DESC, id LIMIT ?",
        (trainer.job, trainer.instance, limit),
    )
    alerts = []
    for row in rows.fetchall():
        try:
            alerts.append(_alert(row))
        except (DamagedCell, ValueError, TypeError) as error:
            connection.execute(
                "UPDATE alerts SET decided_at=unixepoch(), decision='suppress', reason='damaged', detail=?"
                " WHERE id=?",
                (f"its row is damaged: {error}", row["id"]),
            )
    return alerts


def history(
    connection: sqlite3.Connection, alert: Alert, trainer: TrainerKey, clock: Clock, settings: Settings
) -> AlertHistory:
    """The history that matters for the alert."""
    episode = (alert.fingerprint, alert.starts_at)
    now = clock.steady()
    first = connection.execute(
        "SELECT CAST(steady AS REAL) AS steady FROM alerts WHERE fingerprint=? AND starts_at=?"
        " ORDER BY id LIMIT 1",
        episode,
    ).fetchone()
    resolved = connection.execute(
        "SELECT 1 FROM alerts WHERE fingerprint=? AND starts_at=? AND id>? AND status='resolved' LIMIT 1",
        (*episode, alert.id),
    ).fetchone()
    rows = connection.execute(
        "SELECT action, fingerprint, starts_at, CAST(steady AS REAL), CAST(finished_steady AS REAL),"
        " result='refused' FROM actions WHERE trainer_job=? AND trainer_instance=? AND result<>'called_off'"
        " AND dry_run=? ORDER BY steady DESC LIMIT ?",
        (trainer.job, trainer.instance, settings.dry_run, _PAST),
    )
    past = [Past(*row) for row in rows]
    own = [action.began for action in past if (action.fingerprint, action.starts_at) == episode]
    last_hour = connection.execute(
        "SELECT count(*) FROM actions WHERE steady>? AND action<>'notify' AND dry_run=?"
        " AND (result IS NULL OR result<>'called_off')",
        (now - 3600, settings.dry_run),
    ).fetchone()[0]
    return AlertHistory(
        now=now,
        wall=clock.wall(),
        first_seen=min([first["steady"] if first else alert.steady, *own]),
        resolved_since=resolved is not None,
        past=past,
        actions_last_hour=last_hour,
        recovered=connection.execute("SELECT recovered FROM clock").fetchone()[0],
    )


def refuse(connection: sqlite3.Connection, alert: Alert, refusal: Refuse, clock: Clock) -> None:
    """Store a refusal."""
    _decided(connection, alert, refusal.decision, refusal.reason, refusal.detail, clock)


def act(
    connection: sqlite3.Connection, alert: Alert, decision: Act, record: ActionRecord, clock: Clock
) -> None:
    """Store, in one transaction, the decision to act and the action."""
    word = "escalate" if decision.action in ("notify", "restart") else "act"
    _decided(connection, alert, word, decision.action, decision.detail, clock)
    save(connection, record)


def save(connection: sqlite3.Connection, record: ActionRecord) -> None:
    """Store an action; its row is inserted if it does not exist, as in a new database."""
    row = asdict(record)
    connection.execute(_SAVE, row | {name: json.dumps(row[name]) for name in _JSON_COLUMNS})


def unfinished(connection: sqlite3.Connection, trainer: TrainerKey) -> list[ActionRecord]:
    """Unfinished actions of the trainer, oldest first."""
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM actions"
        " WHERE state<>'done' AND trainer_job=? AND trainer_instance=? ORDER BY steady",
        (trainer.job, trainer.instance),
    )
    records = []
    for row in rows.fetchall():
        try:
            records.append(_record(row))
        except (DamagedCell, ValueError, TypeError) as error:
            connection.execute(
                "UPDATE actions SET state='done', result='failed', detail=? WHERE request_id=?",
                (f"its row is damaged: {error}", row["request_id"]),
            )
    return records


def prune(connection: sqlite3.Connection, clock: Clock, settings: Settings, limit: int = 2000) -> int:
    """Delete up to `limit` rows that are too old, and refusals over the row limit; returns their number."""
    oldest = clock.steady() - settings.retention_days * 86400
    gone = connection.execute(
        "DELETE FROM alerts WHERE id IN"
        " (SELECT id FROM alerts WHERE decision IS NOT NULL AND steady<? LIMIT ?)",
        (oldest, limit),
    ).rowcount
    gone += connection.execute("DELETE FROM actions WHERE state='done' AND steady<?", (oldest,)).rowcount
    excess = connection.execute("SELECT count(*) FROM alerts").fetchone()[0] - settings.retention_rows
    if excess > 0:
        gone += connection.execute(
            "DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE decision NOT IN ('act', 'escalate')"
            " ORDER BY id LIMIT ?)",
            (min(excess, limit),),
        ).rowcount
    return gone


def _alert(row: sqlite3.Row) -> Alert:
    ends_at = None if row["ends_at"] is None else int(row["ends_at"])
    return Alert(
        row["id"],
        row["fingerprint"],
        int(row["starts_at"]),
        ends_at,
        row["status"],
        mapping(row["labels"]),
        float(row["steady"]),
    )


def _record(row: sqlite3.Row) -> ActionRecord:
    values = dict(row) | {name: mapping(row[name]) for name in _JSON_COLUMNS}
    for name in ("received_steady", "steady", "decided_at", "attempts"):
        if not isinstance(values[name], int | float):
            raise DamagedCell(f"{name} is not a number")
    return ActionRecord(**values)


def _decided(
    connection: sqlite3.Connection, alert: Alert, decision: str, reason: str, detail: str, clock: Clock
) -> None:
    connection.execute(
        "UPDATE alerts SET decided_at=?, decision=?, reason=?, detail=? WHERE id=?",
        (clock.wall(), decision, reason, detail, alert.id),
    )
