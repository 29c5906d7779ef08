import json
import sqlite3

import pytest

from heapwatch_receiver import audit, ledger
from heapwatch_receiver.clock import Clock
from heapwatch_receiver.decide import Refuse
from heapwatch_receiver.ledger import ActionRecord, TrainerKey
from heapwatch_receiver.page import render
from heapwatch_receiver.payload import Notification
from heapwatch_receiver.settings import Settings
from heapwatch_receiver.store import SCHEMA, Store
from tests.alerting.harness import alert, notification

TRAINER = TrainerKey("trainer", "a:1")
SETTINGS = Settings(retention_rows=1000)


class Time:
    wall = 1.7e9
    steady = 0.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def clock(time) -> Clock:
    return Clock(lambda: time.wall, lambda: time.steady)


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.executescript(SCHEMA)
    return connection


def receive(database: sqlite3.Connection, clock: Clock, *alerts: dict) -> list[Refuse]:
    return ledger.receive(
        database, Notification.model_validate_json(json.dumps(notification(*alerts))).alerts, clock
    )


def record(clock: Clock, request_id: str, **changes: object) -> ActionRecord:
    values: dict = {
        "alert_id": 1, "fingerprint": "f", "starts_at": 1,
        "trainer_job": "trainer", "trainer_instance": "a:1",
        "labels": {}, "action": "regular", "dry_run": False, "received_steady": 0, "steady": clock.steady(),
        "decided_at": clock.wall(), "state": "done", "result": "helped", "finished_steady": clock.steady(),
        "finished_at": clock.wall(),
    }  # fmt: skip
    return ActionRecord(request_id=request_id, **{**values, **changes})


def test_emergencies_come_first(database, clock):
    receive(database, clock, alert("a:1", 1), alert("a:1", 2), alert("a:1", 3, labels={"level": "emergency"}))
    assert [one.id for one in ledger.waiting(database, TRAINER, 10)] == [3, 1, 2]


def test_what_needs_no_history_is_decided_on_receipt(database, clock):
    refusals = receive(
        database, clock, alert("a:1", 1, status="resolved"), alert("a:1", 2, labels={"action": "page"})
    )
    assert [one.reason for one in refusals] == ["resolved", "not_cleanup"]
    assert ledger.trainers_with_work(database) == []


def test_an_end_is_seen_by_what_waits_before_it(database, clock):
    receive(database, clock, alert("a:1"), alert("a:1", status="resolved"))
    (waiting,) = ledger.waiting(database, TRAINER, 10)
    assert ledger.history(database, waiting, TRAINER, clock, SETTINGS).resolved_since


def test_an_action_is_kept_as_it_was(database, clock):
    kept = record(
        clock,
        "r",
        state="requesting",
        result=None,
        before={"trainer": {"memory": 2e9}},
        removed={"bodies": 3.0},
    )
    ledger.save(database, kept)
    assert ledger.unfinished(database, TRAINER) == [kept]
    assert ledger.trainers_with_work(database) == [TRAINER]


def test_history_counts_what_was_done_and_not_what_was_called_off(database, clock, time):
    receive(database, clock, alert("a:1"))
    (waiting,) = ledger.waiting(database, TRAINER, 10)
    ledger.save(database, record(clock, "old"))
    time.steady = 4000
    ledger.save(database, record(clock, "off", result="called_off"))
    ledger.save(database, record(clock, "dry", dry_run=True))
    ledger.save(database, record(clock, "other", trainer_instance="b:1"))
    ledger.save(database, record(clock, "told", action="notify"))
    known = ledger.history(database, waiting, TRAINER, clock, SETTINGS)
    assert [past.action for past in known.past] == ["notify", "regular"]
    assert known.actions_last_hour == 1


def test_an_episode_is_remembered_by_its_action_when_its_rows_are_pruned(database, clock, time):
    receive(database, clock, alert("a:1"))
    (first,) = ledger.waiting(database, TRAINER, 10)
    ledger.save(database, record(clock, "r", fingerprint=first.fingerprint, starts_at=first.starts_at))
    database.execute("DELETE FROM alerts")
    time.steady = 900
    receive(database, clock, alert("a:1"))
    (again,) = ledger.waiting(database, TRAINER, 10)
    assert ledger.history(database, again, TRAINER, clock, SETTINGS).first_seen == 0


def test_old_rows_go_and_waiting_ones_stay(database, clock, time):
    receive(database, clock, alert("a:1", status="resolved"), alert("a:1", 2))
    ledger.save(database, record(clock, "r"))
    time.steady = 91 * 86400
    assert ledger.prune(database, clock, SETTINGS) == 2
    assert [row["status"] for row in database.execute("SELECT status FROM alerts")] == ["firing"]


def test_a_clock_jump_prunes_nothing(database, clock, time):
    receive(database, clock, alert("a:1", status="resolved"))
    time.wall = 9e9
    assert ledger.prune(database, clock, SETTINGS) == 0


def test_refusals_over_the_row_limit_go_and_acts_stay(database, clock):
    receive(database, clock, *(alert("a:1", n, status="resolved") for n in range(1100)))
    database.execute("UPDATE alerts SET decision='act' WHERE id<=10")
    ledger.prune(database, clock, SETTINGS)
    ids = [row["id"] for row in database.execute("SELECT id FROM alerts")]
    assert len(ids) == 1000
    assert ids[:10] == list(range(1, 11))


def test_the_audit_is_paged_and_filtered(database, clock):
    receive(database, clock, *(alert("a:1", n, status="resolved") for n in range(5)), alert("b:1", 9))
    ledger.save(database, record(clock, "r", alert_id=6))
    first = audit.page(database, audit.Filter(limit=4))
    second = audit.page(database, audit.Filter(limit=4, before=first.next))
    assert [row.id for row in first.rows + second.rows] == [6, 5, 4, 3, 2, 1]
    assert second.next is None
    (acted,) = audit.page(database, audit.Filter(result="helped")).rows
    assert (acted.instance, acted.decision) == ("b:1", "waiting")
    assert audit.page(database, audit.Filter(decision="close", instance="b:1")).rows == []
    assert audit.decisions(database) == {"close": 5, "waiting": 1}


@pytest.mark.parametrize(
    "column", ["labels", "summary", "received_at", "starts_at", "decided_at", "alertname"]
)
@pytest.mark.parametrize("damage", [b"\xff\xfe{", "{", "[]", 1e300, -1])
def test_one_damaged_cell_leaves_the_other_rows_readable(tmp_path, clock, column, damage):
    store = Store(tmp_path / "ledger.sqlite3", clock)
    store.open()
    connection = store._open()
    receive(connection, clock, alert("a:1", 1), alert("b:1", 2), alert("c:1", 3))
    connection.execute(f"UPDATE alerts SET {column}=CAST(? AS TEXT) WHERE id=2", (damage,))
    with store.read() as reading:
        rows = audit.page(reading, audit.Filter()).rows
        html = render(audit.page(reading, audit.Filter()), audit.decisions(reading), audit.Filter(), SETTINGS)
    assert [row.id for row in rows] == [3, 2, 1]
    assert [row.instance for row in rows][::2] == ["c:1", "a:1"]
    assert "c:1" in html


def test_an_alert_whose_cell_is_damaged_does_not_delay_the_next(database, clock):
    receive(database, clock, alert("a:1", 1), alert("a:1", 2))
    database.execute("UPDATE alerts SET labels='{' WHERE id=1")
    assert [one.id for one in ledger.waiting(database, TRAINER, 10)] == [2]
    row = database.execute("SELECT decision, reason, detail FROM alerts WHERE id=1").fetchone()
    assert (row["decision"], row["reason"]) == ("suppress", "damaged")
    assert "not JSON" in row["detail"]


@pytest.mark.parametrize(("column", "damage"), [("labels", "{"), ("before", "3"), ("steady", "soon")])
def test_an_action_whose_cell_is_damaged_ends_as_failed(database, clock, column, damage):
    ledger.save(database, record(clock, "r", state="requesting", result=None))
    database.execute(f"UPDATE actions SET {column}=?", (damage,))
    assert ledger.unfinished(database, TRAINER) == []
    row = database.execute("SELECT state, result, detail FROM actions").fetchone()
    assert (row["state"], row["result"]) == ("done", "failed")
    assert "damaged" in row["detail"]
