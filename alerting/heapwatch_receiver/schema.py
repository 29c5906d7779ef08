"""Tables of the database, and their JSON. A change adds a migration in store.py and raises VERSION."""

from __future__ import annotations

import json
from typing import Any

VERSION = 1

# alerts: each alert of each notification, with the decision on it (null while it waits).
# actions: what follows from a decision; the state goes decided -> requesting -> answered -> done.
# before and after: readings by source (trainer, prometheus).
# Columns ending in _at are wall seconds; columns with `steady` are seconds of Clock.steady(), for durations.
SCHEMA = """
CREATE TABLE clock (wall REAL NOT NULL, steady REAL NOT NULL, recovered REAL, watchdog_at REAL NOT NULL);
INSERT INTO clock (wall, steady, watchdog_at) VALUES (0, 0, unixepoch());

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    received_at REAL NOT NULL,
    steady REAL NOT NULL,
    fingerprint TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER,
    status TEXT NOT NULL,
    alertname TEXT NOT NULL,
    trainer_job TEXT NOT NULL,
    trainer_instance TEXT NOT NULL,
    urgent INTEGER NOT NULL,
    labels TEXT NOT NULL,
    summary TEXT NOT NULL,
    decided_at REAL,
    decision TEXT,
    reason TEXT,
    detail TEXT
);
CREATE INDEX alerts_episode ON alerts (fingerprint, starts_at);
CREATE INDEX alerts_waiting ON alerts (trainer_job, trainer_instance, urgent DESC, id) WHERE decision IS NULL;

CREATE TABLE actions (
    request_id TEXT PRIMARY KEY,
    alert_id INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    trainer_job TEXT NOT NULL,
    trainer_instance TEXT NOT NULL,
    labels TEXT NOT NULL,
    action TEXT NOT NULL,
    dry_run INTEGER NOT NULL,
    received_steady REAL NOT NULL,
    steady REAL NOT NULL,
    decided_at REAL NOT NULL,
    state TEXT NOT NULL,
    url TEXT NOT NULL,
    process_start REAL,
    attempts INTEGER NOT NULL,
    answered_at REAL,
    finished_at REAL,
    finished_steady REAL,
    result TEXT,
    detail TEXT NOT NULL,
    freed_bytes REAL,
    removed TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    duration_seconds REAL
);
CREATE INDEX actions_trainer ON actions (trainer_job, trainer_instance, steady);
CREATE INDEX actions_steady ON actions (steady);
CREATE INDEX actions_alert ON actions (alert_id);
CREATE INDEX actions_unfinished ON actions (trainer_job, trainer_instance) WHERE state <> 'done';
"""


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
