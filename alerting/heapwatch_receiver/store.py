"""The database: one writer thread, several operations in a commit, a new file if the old one is corrupt."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import queue
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch_receiver.clock import Clock

log = logging.getLogger("heapwatch.receiver")
T = TypeVar("T")
_Operation = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]

_BATCH = 256
_BUSY_SECONDS = 5.0
_STOP_SECONDS = 10.0
# Of the write-ahead log.
_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24

VERSION = 1  # of the schema; a change of it adds a migration and raises this
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


class StoreUnavailable(Exception):
    """Nothing was written: the disk is full or read-only, the file locked or corrupt. A retry may help."""


class _Moved(OSError):
    """The file at the path is not the one that was written."""


class StoreUnusable(Exception):
    """The database cannot be used at all; the message gives the reason."""


class Store:
    """A SQLite file in WAL mode, synced at every commit; no operation on a moved file succeeds.

    `run` passes an operation to the writer thread, which puts all waiting operations into one transaction, so
    several webhooks share one sync. `read` gives a read-only connection to any thread.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.recoveries = 0
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._queue: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="store", daemon=True)

    def open(self) -> None:
        """Open the file exclusively.

        Raises:
            StoreUnusable: the folder is not writable, another receiver uses the file, or its schema is newer.

        """
        try:
            make_private(self.path.parent)
            self._create()
            self._lock = open_own(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreUnusable(f"database {self.path}: another receiver is using it") from None
        except OSError as error:
            raise StoreUnusable(f"database {self.path}: its folder must be writable: {error}") from None
        try:
            connection = self._open()
            damaged = self._journal_is_damaged(connection)
            row = connection.execute("SELECT wall, steady FROM clock").fetchone()
            self._clock.resume(steady=row["steady"], wall=row["wall"])
            if damaged:
                log.error("database %s: its journal is damaged: the last actions are unknown", self.path)
                self._forget_actions(connection)
        except sqlite3.Error as error:
            raise StoreUnusable(f"database {self.path}: {error}") from None

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the waiting operations, then close; it does not wait for a disk that does not answer."""
        self._queue.put(None)
        self._thread.join(_STOP_SECONDS)
        os.close(self._lock)

    async def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation and return its result once its transaction is on disk.

        Raises:
            StoreUnavailable: it was not written.

        """
        future: Future[T] = Future()
        self._queue.put((operation, future))
        return await asyncio.wrap_future(future)

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection.

        Raises:
            StoreUnavailable: the file cannot be read.

        """
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS
            )
            try:
                _read_as_written(connection)
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            if _is_corrupt(error):  # the writer may not notice while its pages are cached
                self._queue.put((self._verify, Future()))
            raise StoreUnavailable(str(error)) from error

    def _open(self) -> sqlite3.Connection:
        """The writer's connection, opened again after the file was moved aside."""
        if self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_corrupt(error):
                    raise
                self._connection = self._move_aside(error)
        return self._connection

    def _create(self) -> None:
        """Make the file, mode 0600, unless it is there: SQLite gives its journal the mode of the database."""
        descriptor = open_own(self.path, os.O_RDWR | os.O_CREAT, named=True)
        try:
            self._file = _identity(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _check_in_place(self) -> None:
        """Raise _Moved if the file was moved, removed or replaced since it was opened."""
        try:
            if _identity(os.stat(self.path)) == self._file:
                return
        except FileNotFoundError:
            pass
        raise _Moved(f"{self.path} was moved, removed or replaced")

    def _connect(self) -> sqlite3.Connection:
        self._create()
        connection = sqlite3.connect(
            self.path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            _read_as_written(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            _check(connection)
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _journal_is_damaged(self, connection: sqlite3.Connection) -> bool:
        """Whether the journal that the last process left has transactions that SQLite does not read."""
        try:
            with os.fdopen(open_own(self.path.with_name(self.path.name + "-wal"), named=True), "rb") as file:
                journal = file.read()
        except OSError:
            return False
        _, kept, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return _drops_transactions(journal, max(0, kept))

    def _verify(self, _: sqlite3.Connection) -> None:
        """Read the file; if it is corrupt, the error makes the writer move it aside."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS)) as connection:
            _check(connection)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StoreUnusable(
                f"database {self.path}: schema {version} is newer than this receiver's {VERSION}"
            )
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA}; PRAGMA user_version={VERSION}; COMMIT")

    def _move_aside(self, error: sqlite3.Error) -> sqlite3.Connection:
        """Start a new file. Earlier actions are then unknown, so no action is taken for a while."""
        corrupt = f"{self.path}.corrupt-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
        log.error(
            "database %s is corrupt (%s): moved to %s, going on with a fresh one", self.path, error, corrupt
        )
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}{suffix}", f"{corrupt}{suffix}")
        return self._connect_to_another()

    def _connect_to_another(self) -> sqlite3.Connection:
        """Connect to a file that does not have what was written last."""
        connection = self._connect()
        self._forget_actions(connection)
        return connection

    def _forget_actions(self, connection: sqlite3.Connection) -> None:
        """Note that actions up to now may be unknown, so that none is taken for a while."""
        now = self._clock.steady()
        connection.execute("UPDATE clock SET wall=?, recovered=?, steady=?", (self._clock.wall(), now, now))
        self.recoveries += 1

    def _write(self) -> None:
        while True:
            first = self._queue.get()
            batch: list[_Operation] = [first] if first else []
            stopping = first is None
            while not stopping and len(batch) < _BATCH:
                try:
                    operation = self._queue.get_nowait()
                except queue.Empty:
                    break
                if operation is None:
                    stopping = True
                else:
                    batch.append(operation)
            if batch:
                self._commit(batch)
            if stopping:
                if self._connection is not None:
                    self._connection.close()
                return

    def _commit(self, batch: list[_Operation]) -> None:
        """Run a batch in one transaction; if that fails, run each alone: one must not fail the others."""
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            unchanged = connection.total_changes
            results = [operation(connection) for operation, _ in batch]
            if connection.total_changes > unchanged:  # no sync for a batch that only reads
                times = (self._clock.wall(), self._clock.steady())
                connection.execute("UPDATE clock SET wall=?, steady=?", times)
            connection.execute("COMMIT")
            self._check_in_place()
        except Exception as error:
            self._recover(error)
            if len(batch) > 1:
                for operation in batch:
                    self._commit([operation])
                return
            _, future = batch[0]
            if isinstance(error, sqlite3.DatabaseError | OSError):
                unavailable = StoreUnavailable(str(error))
                unavailable.__cause__ = error
                error = unavailable
            if future.set_running_or_notify_cancel():  # no caller was cancelled
                future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if future.set_running_or_notify_cancel():  # no caller was cancelled
                future.set_result(result)

    def _recover(self, error: Exception) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(sqlite3.Error):
            self._connection.rollback()
        corrupt = error if isinstance(error, sqlite3.DatabaseError) and _is_corrupt(error) else None
        if corrupt or isinstance(error, _Moved):
            with contextlib.suppress(sqlite3.Error):
                if not corrupt:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._connection.close()
            self._connection = None
            try:
                if corrupt:
                    self._connection = self._move_aside(corrupt)
                else:
                    log.error("database %s: going on with what is there now", error)
                    for suffix in ("-wal", "-shm"):  # of the other file, which has all that was in them
                        Path(f"{self.path}{suffix}").unlink(missing_ok=True)
                    self._connection = self._connect_to_another()
            except (sqlite3.Error, OSError) as another:
                log.error("database %s: no fresh one could be made yet: %s", self.path, another)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _read_as_written(connection: sqlite3.Connection) -> None:
    """Rows by column name; a damaged cell that is no UTF-8 must not make its whole table unreadable."""
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda cell: cell.decode("utf-8", "replace")


def _check(connection: sqlite3.Connection) -> None:
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)


def _is_corrupt(error: sqlite3.Error) -> bool:
    """Whether the file is corrupt; full disks and locked files raise subclasses of DatabaseError."""
    return type(error) is sqlite3.DatabaseError


def _drops_transactions(log: bytes, kept: int) -> bool:
    """Whether a transaction was committed behind the `kept` frames that SQLite reads of a write-ahead log.

    SQLite reads a damaged log up to the damage and says nothing. A frame belongs to the present log if it has
    the salts of the header. The last frame of a transaction has the size of the database, the others 0.

    Source: https://sqlite.org/fileformat.html#the_write_ahead_log
    """
    if len(log) < _HEADER_BYTES:
        return False
    page_bytes, salts = struct.unpack_from(">I", log, 8)[0], log[16:24]
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    for at in range(_HEADER_BYTES + kept * frame_bytes, len(log) - frame_bytes + 1, frame_bytes):
        if log[at + 8 : at + 16] == salts and any(log[at + 4 : at + 8]):
            return True
    return False
