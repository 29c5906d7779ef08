"""Queries on the ledger: every alert with the decision on it and the action that followed."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from typing import Literal

from pydantic import BaseModel, Field

from heapwatch.runtime.plain_text import plain
from heapwatch_receiver import cells
from heapwatch_receiver.payload import EARLIEST, LATEST

_FILTERS = {
    "decision": "coalesce(alerts.decision, 'waiting')",
    "reason": "alerts.reason",
    "action": "actions.action",
    "result": "actions.result",
    "job": "alerts.trainer_job",
    "instance": "alerts.trainer_instance",
    "alertname": "alerts.alertname",
}
_QUERY = """
SELECT alerts.id, alerts.received_at, alerts.fingerprint, alerts.starts_at, alerts.status, alerts.alertname,
    alerts.trainer_job, alerts.trainer_instance, alerts.labels, alerts.summary, alerts.decided_at,
    coalesce(alerts.decision, 'waiting') AS decision, alerts.reason, alerts.detail,
    actions.request_id, actions.action, actions.state, actions.result, actions.detail AS action_detail,
    actions.attempts, actions.answered_at,
    actions.finished_at, actions.freed_bytes, actions.removed, actions.before, actions.after,
    actions.duration_seconds
FROM alerts LEFT JOIN actions ON actions.alert_id=alerts.id
WHERE {conditions} ORDER BY alerts.id DESC LIMIT :limit
"""


class Filter(BaseModel, extra="forbid"):
    """Selects rows that match every given field, older than the row `before`, at most `limit`."""

    decision: Literal["act", "escalate", "suppress", "give_up", "close", "waiting"] | None = None
    reason: str | None = Field(None, max_length=64)
    action: Literal["regular", "emergency", "notify", "restart"] | None = None
    result: str | None = Field(None, max_length=64)
    job: str | None = Field(None, max_length=1024)
    instance: str | None = Field(None, max_length=1024)
    alertname: str | None = Field(None, max_length=1024)
    before: int | None = Field(None, ge=1, lt=1 << 62)
    limit: int = Field(50, ge=1, le=500)


class ActionRow(BaseModel):
    """An action; `before` and `after` are readings by source, memory in bytes."""

    request_id: str
    action: str
    state: str
    result: str | None
    detail: str
    requests: int
    answered_at: datetime | None
    finished_at: datetime | None
    freed_bytes: float | None
    removed: dict[str, float]
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    duration_seconds: float | None


class AuditRow(BaseModel):
    """One alert received and the decision on it."""

    id: int
    received_at: datetime
    alertname: str
    status: str
    fingerprint: str
    starts_at: datetime
    job: str
    instance: str
    labels: dict[str, str]
    summary: str
    decided_at: datetime | None
    decision: str
    reason: str | None
    detail: str | None
    action: ActionRow | None


class Page(BaseModel):
    """Rows, newest first; `next` is the `before` of the next page, null on the last."""

    rows: list[AuditRow]
    next: int | None


def page(connection: sqlite3.Connection, chosen: Filter) -> Page:
    """One page of rows."""
    values = chosen.model_dump(exclude_none=True)
    conditions = [f"{column}=:{name}" for name, column in _FILTERS.items() if name in values]
    if chosen.before is not None:
        conditions.append("alerts.id<:before")
    query = _QUERY.format(conditions=" AND ".join(conditions) or "1")
    found = connection.execute(query, values | {"limit": chosen.limit + 1}).fetchall()
    rows = [_row(row) for row in found[: chosen.limit]]
    return Page(rows=rows, next=rows[-1].id if len(found) > chosen.limit else None)


def decisions(connection: sqlite3.Connection) -> dict[str, int]:
    """Number of rows by decision."""
    return dict(
        connection.execute(
            "SELECT coalesce(decision, 'waiting'), count(*) FROM alerts GROUP BY 1 ORDER BY 2 DESC"
        )
    )


def _row(row: sqlite3.Row) -> AuditRow:
    try:
        return _whole(row)
    except (ValueError, TypeError, ArithmeticError) as error:
        return _damaged(row, error)


def _whole(row: sqlite3.Row) -> AuditRow:
    action = row["request_id"] and ActionRow(
        request_id=row["request_id"],
        action=row["action"],
        state=row["state"],
        result=row["result"],
        detail=row["action_detail"],
        requests=row["attempts"],
        answered_at=_time(row["answered_at"]),
        finished_at=_time(row["finished_at"]),
        freed_bytes=row["freed_bytes"],
        removed=cells.mapping(row["removed"]),
        before=cells.mapping(row["before"]),
        after=cells.mapping(row["after"]),
        duration_seconds=row["duration_seconds"],
    )
    return AuditRow(
        id=row["id"],
        received_at=_moment(row["received_at"]),
        alertname=row["alertname"],
        status=row["status"],
        fingerprint=row["fingerprint"],
        starts_at=_moment(row["starts_at"] / 1e6),
        job=row["trainer_job"],
        instance=row["trainer_instance"],
        labels=cells.mapping(row["labels"]),
        summary=row["summary"],
        decided_at=_time(row["decided_at"]),
        decision=row["decision"],
        reason=row["reason"],
        detail=row["detail"],
        action=action or None,
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, EARLIEST / 1e6), LATEST / 1e6), timezone.utc)


def _damaged(row: sqlite3.Row, error: Exception) -> AuditRow:
    """A placeholder for a row with a damaged cell: the other rows can still be read."""
    nothing = datetime.fromtimestamp(0, timezone.utc)
    return AuditRow(
        id=row["id"],
        received_at=nothing,
        alertname="",
        status="",
        fingerprint="",
        starts_at=nothing,
        job="",
        instance="",
        labels={},
        summary="",
        decided_at=None,
        decision="damaged",
        reason=None,
        detail=f"this row is damaged: {plain(error, 300)}",
        action=None,
    )
