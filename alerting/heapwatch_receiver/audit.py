"""Queries on the ledger: every alert with the decision on it and the action that followed."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from heapwatch.runtime.plain_text import plain
from heapwatch_receiver.ledger import DamagedCell, mapping
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
    alerts.trainer_job AS job, alerts.trainer_instance AS instance, alerts.labels,
    alerts.summary, alerts.decided_at, coalesce(alerts.decision, 'waiting') AS decision, alerts.reason,
    alerts.detail, actions.request_id, actions.action, actions.state, actions.result,
    actions.detail AS action_detail, actions.attempts AS requests, actions.answered_at, actions.finished_at,
    actions.freed_bytes, actions.removed, actions.before, actions.after, actions.duration_seconds
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


def _moment(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(min(max(seconds, EARLIEST / 1e6), LATEST / 1e6), timezone.utc)


# As the columns hold them: seconds or microseconds since the epoch, and JSON.
Moment = Annotated[datetime, BeforeValidator(_moment)]
Start = Annotated[datetime, BeforeValidator(lambda microseconds: _moment(microseconds / 1e6))]
MaybeMoment = Annotated[datetime | None, BeforeValidator(_moment)]
Texts = Annotated[dict[str, str], BeforeValidator(mapping)]
Numbers = Annotated[dict[str, float], BeforeValidator(mapping)]
Levels = Annotated[dict[str, dict[str, float]], BeforeValidator(mapping)]


class ActionRow(BaseModel):
    """An action; `before` and `after` are readings by source, memory in bytes."""

    request_id: str
    action: str
    state: str
    result: str | None
    detail: str = Field(validation_alias="action_detail")
    requests: int
    answered_at: MaybeMoment
    finished_at: MaybeMoment
    freed_bytes: float | None
    removed: Numbers
    before: Levels
    after: Levels
    duration_seconds: float | None


class AuditRow(BaseModel):
    """One alert received and the decision on it."""

    id: int
    received_at: Moment
    alertname: str
    status: str
    fingerprint: str
    starts_at: Start
    job: str
    instance: str
    labels: Texts
    summary: str
    decided_at: MaybeMoment
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
    columns = dict(row)
    try:
        action = ActionRow.model_validate(columns) if row["request_id"] else None
        return AuditRow.model_validate({**columns, "action": action})
    except (DamagedCell, ValueError, TypeError, ArithmeticError) as error:
        return _damaged(row["id"], error)


def _damaged(number: int, error: Exception) -> AuditRow:
    """A placeholder for a row with a damaged cell: the other rows can still be read."""
    values: dict[str, Any] = {
        **dict.fromkeys(("alertname", "status", "fingerprint", "job", "instance", "summary"), ""),
        **dict.fromkeys(("decided_at", "reason", "action")),
        "id": number,
        "received_at": 0,
        "starts_at": 0,
        "labels": "{}",
        "decision": "damaged",
        "detail": f"this row is damaged: {plain(error, 300)}",
    }
    return AuditRow(**values)
