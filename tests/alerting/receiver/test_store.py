import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from heapwatch_receiver.clock import Clock
from heapwatch_receiver.store import Store, StoreUnavailable, StoreUnusable


def with_store(path: Path, use: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        store = Store(path, Clock())
        store.open()
        store.start()
        try:
            return await use(store)
        finally:
            store.stop()

    return asyncio.run(run())


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE t (n INTEGER)")


def insert(number: int) -> Callable[[sqlite3.Connection], None]:
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (number,)) and None


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])


def test_what_was_written_is_there_after_a_restart(tmp_path):
    async def write(store: Store) -> None:
        await store.run(table)
        await asyncio.gather(*(store.run(insert(n)) for n in range(1000)))

    with_store(tmp_path / "db", write)
    assert with_store(tmp_path / "db", lambda store: store.run(count)) == 1000


def test_many_operations_share_a_commit(tmp_path):
    async def write(store: Store) -> int:
        await store.run(table)
        commits = 0

        def one(connection: sqlite3.Connection) -> None:
            nonlocal commits
            insert(1)(connection)
            if connection.execute("SELECT count(*) FROM t").fetchone()[0] % 100 == 0:
                connection.set_trace_callback(lambda sql: seen.append(sql))

        seen: list[str] = []
        await asyncio.gather(*(store.run(one) for _ in range(1000)))
        return sum(sql == "COMMIT" for sql in seen)

    assert with_store(tmp_path / "db", write) < 100


def test_one_that_fails_does_not_fail_the_others(tmp_path):
    def fail(connection: sqlite3.Connection) -> None:
        insert(0)(connection)
        raise ValueError("broken")

    async def write(store: Store) -> tuple[list[Any], int]:
        await store.run(table)
        operations = [store.run(fail if n == 50 else insert(n)) for n in range(100)]
        return await asyncio.gather(*operations, return_exceptions=True), await store.run(count)

    outcomes, written = with_store(tmp_path / "db", write)
    assert [type(outcome) for outcome in outcomes if outcome] == [ValueError]
    assert written == 99


def test_what_a_cancelled_caller_asked_for_is_written_and_delays_nobody(tmp_path):
    released = threading.Event()

    def held(connection: sqlite3.Connection) -> None:
        released.wait(10)
        insert(1)(connection)

    async def write(store: Store) -> int:
        await store.run(table)
        caller = asyncio.create_task(store.run(held))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        released.set()
        await store.run(insert(2))
        return await store.run(count)

    assert with_store(tmp_path / "db", write) == 2


def test_a_locked_database_is_unavailable_then_available(tmp_path, monkeypatch):
    monkeypatch.setattr("heapwatch_receiver.store._BUSY_SECONDS", 0.05)

    async def write(store: Store) -> None:
        await store.run(table)
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await store.run(insert(1))
        other.execute("ROLLBACK")
        await store.run(insert(1))

    with_store(tmp_path / "db", write)


@pytest.mark.parametrize("content", [b"\0" * 8192, b"not a database" * 1000])
def test_a_corrupt_file_is_moved_aside(tmp_path, content):
    (tmp_path / "db").write_bytes(content)

    async def recovered(store: Store) -> tuple[int, Any]:
        row = await store.run(lambda connection: connection.execute("SELECT recovered FROM clock").fetchone())
        return store.recoveries, row[0]

    recoveries, when = with_store(tmp_path / "db", recovered)
    assert recoveries == 1
    assert when is not None
    assert [path.read_bytes() for path in tmp_path.glob("db.corrupt-*")] == [content]


def test_a_file_that_is_damaged_under_its_reader_is_moved_aside(tmp_path):
    async def damage(store: Store) -> int:
        await store.run(table)
        with contextlib.closing(sqlite3.connect(tmp_path / "db")) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (tmp_path / "db").open("r+b") as file:
            file.write(b"\0" * 8192)
        with pytest.raises(StoreUnavailable), store.read() as connection:
            connection.execute("SELECT * FROM clock").fetchone()
        while not store.recoveries:
            await asyncio.sleep(0.01)
        return store.recoveries

    assert with_store(tmp_path / "db", damage) == 1


def test_a_newer_schema_is_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreUnusable, match="schema 99 is newer"):
        Store(tmp_path / "db", Clock()).open()


def test_two_receivers_do_not_share_a_database(tmp_path):
    async def open_another(_: Store) -> None:
        with pytest.raises(StoreUnusable, match="another receiver"):
            Store(tmp_path / "db", Clock()).open()

    with_store(tmp_path / "db", open_another)


def test_a_folder_that_cannot_be_made_is_named():
    with pytest.raises(StoreUnusable, match=r"/proc/nowhere/db: its folder must be writable"):
        Store(Path("/proc/nowhere/db"), Clock()).open()


def test_no_other_user_can_read_the_database(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = Store(tmp_path / "receiver.sqlite3", Clock())
        store.open()
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("how", ["moved", "moved with its journal", "removed", "replaced"])
def test_nothing_counts_as_written_to_a_file_that_is_not_in_its_place(tmp_path, how):
    path = tmp_path / "db"

    async def write(store: Store) -> None:
        await store.run(table)
        (tmp_path / "copy").write_bytes(path.read_bytes())
        if how == "removed":
            path.unlink()
        elif how == "replaced":
            os.replace(tmp_path / "copy", path)
        else:
            for file in tmp_path.glob("db*" if "journal" in how else "db"):
                if not file.name.endswith(".lock"):
                    file.rename(tmp_path / f"away-{file.name}")
        with pytest.raises(StoreUnavailable, match="moved, removed or replaced"):
            await store.run(insert(1))
        with contextlib.suppress(StoreUnavailable):
            await store.run(table)  # a copy has it
        await store.run(insert(2))
        assert store.recoveries == 1

    with_store(path, write)
    assert with_store(path, lambda store: store.run(count)) == 1


@pytest.mark.parametrize(("damaged_at", "kept", "noticed"), [(None, 3, 0), (0.3, 1, 1), (0.99, 3, 0)])
def test_a_damaged_journal_is_noticed_if_a_transaction_behind_it_is_lost(tmp_path, damaged_at, kept, noticed):
    path, killed = tmp_path / "db", tmp_path / "killed"

    async def write(store: Store) -> None:
        await store.run(table)
        for number in range(3):
            await store.run(insert(number))
        killed.mkdir()
        for file in ("db", "db-wal"):
            content = bytearray((tmp_path / file).read_bytes())
            if damaged_at and file == "db-wal":
                content[int(len(content) * damaged_at)] ^= 1
            (killed / file).write_bytes(content)

    with_store(path, write)

    async def read(store: Store) -> tuple[int, int]:
        return await store.run(count), store.recoveries

    number, recoveries = with_store(killed / "db", read)
    assert number <= kept
    assert recoveries == noticed
