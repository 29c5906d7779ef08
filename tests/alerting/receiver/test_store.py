import asyncio
import os
import sqlite3
from contextlib import closing

import pytest

from heapwatch_receiver.store import Store, StoreUnavailable, StoreUnusable


def beat_at(store: Store, number: float) -> None:
    asyncio.run(store.run(lambda connection: connection.execute("UPDATE heartbeat SET at=?", (number,))))


def last_beat(store: Store) -> float:
    with store.transaction() as connection:
        return connection.execute("SELECT at FROM heartbeat").fetchone()[0]


def test_what_was_written_is_there_after_a_restart(tmp_path):
    with closing(Store(tmp_path / "db")) as store:
        beat_at(store, 7)
    with closing(Store(tmp_path / "db")) as store:
        assert last_beat(store) == 7


def test_every_commit_is_on_disk(tmp_path):
    with closing(Store(tmp_path / "db")) as store, store.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_an_operation_is_written_whole_or_not_at_all(tmp_path):
    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE heartbeat SET at=8")
        raise ValueError("broken")

    with closing(Store(tmp_path / "db")) as store:
        beat_at(store, 7)
        with pytest.raises(ValueError, match="broken"):
            asyncio.run(store.run(broken))
        assert last_beat(store) == 7


def test_what_sqlite_refuses_is_unavailable(tmp_path):
    with closing(Store(tmp_path / "db")) as store, pytest.raises(StoreUnavailable, match="no such table"):
        asyncio.run(store.run(lambda connection: connection.execute("SELECT * FROM missing")))


@pytest.mark.parametrize("content", [b"\0" * 8192, b"not a database" * 1000])
def test_a_damaged_file_is_set_aside_with_one_line_that_says_where(tmp_path, caplog, content):
    (tmp_path / "db").write_bytes(content)
    with closing(Store(tmp_path / "db")) as store:
        beat_at(store, 7)
    (aside,) = tmp_path.glob("db.damaged-*")
    assert aside.read_bytes() == content
    (line,) = caplog.messages
    assert str(aside) in line


def test_a_page_that_is_damaged_is_found_at_the_start(tmp_path):
    with closing(Store(tmp_path / "db")) as store:
        beat_at(store, 7)
    with (tmp_path / "db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xde\xad\xbe\xef" * 1024)
    with closing(Store(tmp_path / "db")) as store:
        assert last_beat(store) != 7
    assert list(tmp_path.glob("db.damaged-*"))


def test_a_file_of_another_schema_is_set_aside(tmp_path, caplog):
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        connection.execute("PRAGMA user_version=1")
    Store(tmp_path / "db").close()
    assert "its schema is 1" in caplog.text
    assert list(tmp_path.glob("db.damaged-*"))


def test_two_receivers_do_not_share_a_database(tmp_path, monkeypatch):
    monkeypatch.setattr("heapwatch_receiver.store._BUSY_SECONDS", 0.05)
    with (
        closing(Store(tmp_path / "db")),
        pytest.raises(StoreUnusable, match=r"locked \(by another receiver\?\)"),
    ):
        Store(tmp_path / "db")


def test_no_other_user_can_read_the_database(tmp_path):
    before = os.umask(0o022)
    try:
        with closing(Store(tmp_path / "data" / "db")) as store:
            beat_at(store, 7)
            modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "data").iterdir()}
    finally:
        os.umask(before)
    assert modes == {"db": 0o600, "db-wal": 0o600}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
