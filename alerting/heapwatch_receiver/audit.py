"""Queries on the ledger: every alert with the decision on it and the action that followed."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from heapwatch_receiver.decide import ActionName
from heapwatch_receiver.ledger import Action

_DECISION = "coalesce(decision, 'waiting')"
_COLUMNS = f"""
    id, received_at, fingerprint, starts_at, status, alertname, job, instance, labels, summary, decided_at,
    {_DECISION} AS decision, reason, detail, record
"""


class Filter(BaseModel, extra="forbid"):
    """Selects rows that match every given field, older than the row `before`, at most `limit`."""

    decision: Literal["act", "escalate", "suppress", "give_up", "close", "waiting"] | None = None
    reason: str | None = Field(None, max_length=64)
    action: ActionName | None = None
    result: str | None = Field(None, max_length=64)
    job: str | None = Field(None, max_length=1024)
    instance: str | None = Field(None, max_length=1024)
    alertname: str | None = Field(None, max_length=1024)
    before: int | None = Field(None, ge=1, lt=1 << 62)
    limit: int = Field(50, ge=1, le=500)


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
    action: Action | None


class Page(BaseModel):
    """Rows, newest first; `next` is the `before` of the next page, null on the last."""

    rows: list[AuditRow]
    next: int | None


def page(connection: sqlite3.Connection, chosen: Filter) -> Page:
    """One page of rows."""
    values = chosen.model_dump(exclude_none=True)
    conditions = [f"{name}=:{name}" for name in values if name not in ("decision", "before", "limit")]
    if chosen.decision is not None:
        conditions.append(f"{_DECISION}=:decision")
    if chosen.before is not None:
        conditions.append("id<:before")
    query = f"SELECT {_COLUMNS} FROM alerts WHERE {' AND '.join(conditions) or '1'}"
    records = connection.execute(
        f"{query} ORDER BY id DESC LIMIT :limit", values | {"limit": chosen.limit + 1}
    ).fetchall()
    rows = [_row(row) for row in records[: chosen.limit]]
    return Page(rows=rows, next=rows[-1].id if len(records) > chosen.limit else None)


def _row(row: sqlite3.Row) -> AuditRow:
    columns = dict(row)
    record = columns.pop("record")
    columns["labels"] = json.loads(columns["labels"])
    columns["action"] = Action.model_validate_json(record) if record else None
    return AuditRow.model_validate(columns)
