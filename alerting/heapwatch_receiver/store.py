"""The database: one SQLite file of one receiver, synced at every commit."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

log = logging.getLogger("heapwatch.receiver")
T = TypeVar("T")

_BUSY_SECONDS = 5.0

VERSION = 2  # of the schema
# One row for each alert of each notification: the alert, the decision on it (null while it waits), and the
# action that follows from the decision, of which `record` is the whole, as JSON. The state of an action goes
# decided -> requesting -> answered -> done. Columns ending in _at are seconds since the epoch; starts_at is
# text.
SCHEMA = f"""
BEGIN;
CREATE TABLE heartbeat (at REAL NOT NULL);
INSERT INTO heartbeat VALUES (unixepoch());

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    received_at REAL NOT NULL,
    fingerprint TEXT NOT NULL,
    starts_at TEXT NOT NULL,
    ends_at REAL,
    status TEXT NOT NULL,
    alertname TEXT NOT NULL,
    job TEXT NOT NULL,
    instance TEXT NOT NULL,
    urgent INTEGER NOT NULL,
    labels TEXT NOT NULL,
    summary TEXT NOT NULL,
    decided_at REAL,
    decision TEXT,
    reason TEXT,
    detail TEXT,
    action TEXT,
    dry_run INTEGER,
    state TEXT,
    result TEXT,
    finished_at REAL,
    record TEXT
);
CREATE INDEX episode ON alerts (fingerprint, starts_at);
CREATE INDEX waiting ON alerts (job, instance, urgent DESC, id) WHERE decision IS NULL;
CREATE INDEX unfinished ON alerts (job, instance) WHERE state <> 'done';
CREATE INDEX acted ON alerts (job, instance, decided_at) WHERE action IS NOT NULL;
PRAGMA user_version={VERSION};
COMMIT;
"""


class StoreUnavailable(Exception):
    """Nothing was read or written: the disk is full or read-only, or the file is damaged."""


class StoreUnusable(Exception):
    """The database cannot be opened; the message gives the reason."""


class Store:
    """A SQLite file in WAL mode, which no other process can open meanwhile.

    Any thread may use it; one at a time does.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it; a damaged one is set aside.

        Raises:
            StoreUnusable: the folder is not writable, or another receiver uses the file.

        """
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._set_aside(error)
                self._connection = self._connect()
        except OSError as error:
            raise StoreUnusable(f"database {path}: its folder must be writable: {error}") from None
        except sqlite3.OperationalError as error:
            another = " (by another receiver?)" if "locked" in str(error) else ""
            raise StoreUnusable(f"database {path}: {error}{another}") from None

    def close(self) -> None:
        """Close the file after the transaction that is running."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection; what is done with it is on disk afterwards, or nothing of it.

        Raises:
            StoreUnavailable: nothing was read or written.

        """
        try:
            with self._lock, self._connection:
                yield self._connection
        except sqlite3.Error as error:
            raise StoreUnavailable(str(error)) from error

    async def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation in a transaction and a thread of its own.

        Raises:
            StoreUnavailable: nothing was read or written.

        """

        def transact() -> T:
            with self.transaction() as connection:
                return operation(connection)

        return await asyncio.to_thread(transact)

    def _connect(self) -> sqlite3.Connection:
        # SQLite gives its journal the mode of the database.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level="IMMEDIATE", check_same_thread=False
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"its schema is {version}, and this receiver's is {VERSION}")
            if version == 0:
                connection.executescript(SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self, error: sqlite3.Error) -> None:
        aside = f"{self.path}.damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
        for suffix in ("", "-wal"):
            if os.path.exists(f"{self.path}{suffix}"):
                os.replace(f"{self.path}{suffix}", f"{aside}{suffix}")
        log.error(
            "database %s cannot be used (%s): it is now %s, with all earlier decisions",
            self.path,
            error,
            aside,
        )


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is damaged; full disks and locked files raise subclasses of DatabaseError."""
    return type(error) is sqlite3.DatabaseError
