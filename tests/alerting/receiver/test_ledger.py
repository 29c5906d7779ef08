import json
import sqlite3
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from heapwatch_receiver import audit, ledger
from heapwatch_receiver.decide import Act, Alert, Refuse, TrainerKey
from heapwatch_receiver.ledger import Action
from heapwatch_receiver.payload import Notification
from heapwatch_receiver.store import SCHEMA
from tests.support.alerting.harness import alert, notification

TRAINER = TrainerKey("trainer", "a:1")
NOW = 1.7e9


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=NOW)
    monkeypatch.setattr(ledger, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.executescript(SCHEMA)
    return connection


def receive(database: sqlite3.Connection, *alerts: dict) -> list[Refuse]:
    notified = Notification.model_validate_json(json.dumps(notification(*alerts)))
    return ledger.receive(database, notified.alerts)


def waiting(database: sqlite3.Connection, trainer: TrainerKey = TRAINER) -> list[Alert]:
    return ledger.waiting(database, trainer, 10)


def acted(
    database: sqlite3.Connection, number: int, at: float = NOW, *, result: str | None = "helped", **given
) -> Action:
    """An alert of this number whose action began, and ended with a result, at this second."""
    instance = given.pop("instance", "a:1")
    receive(database, alert(instance, number))
    moment = datetime.fromtimestamp(at, timezone.utc)
    values = {"action": "regular", "dry_run": False, "url": "", "decided_at": moment, **given}
    action = Action(**values)
    if result:
        action = action.model_copy(update={"result": result, "state": "done", "finished_at": moment})
    (received,) = waiting(database, TrainerKey("trainer", instance))
    ledger.act(database, received, Act(action.action, ""), action)
    return action


def test_emergencies_come_first(database):
    receive(database, alert("a:1", 1), alert("a:1", 2), alert("a:1", 3, labels={"level": "emergency"}))
    assert [one.id for one in waiting(database)] == [3, 1, 2]


def test_what_needs_no_history_is_decided_on_receipt(database):
    refusals = receive(
        database, alert("a:1", 1, status="resolved"), alert("a:1", 2, labels={"action": "page"})
    )
    assert [one.reason for one in refusals] == ["resolved", "not_cleanup"]
    assert ledger.trainers_with_work(database) == []


def test_an_end_is_seen_by_what_waits_before_it(database):
    receive(database, alert("a:1"), alert("a:1", status="resolved"))
    (first,) = waiting(database)
    assert ledger.history(database, first, dry_run=False).resolved_since


def test_an_action_is_kept_as_it_was(database):
    kept = acted(database, 1, result=None, before={"memory": 2e9}, removed={"bodies": 3.0})
    ((received, found),) = ledger.unfinished(database, TRAINER)
    assert found == kept
    assert received.trainer == TRAINER
    assert ledger.trainers_with_work(database) == [TRAINER]


def test_history_counts_what_was_done_to_this_trainer_and_in_the_last_hour(database, clock):
    acted(database, 1)
    clock.now = NOW + 4000
    acted(database, 2, NOW + 4000, dry_run=True)
    acted(database, 3, NOW + 4000, instance="b:1")
    acted(database, 4, NOW + 4000, action="notify", result="notified")
    receive(database, alert("a:1", 5))
    (last,) = waiting(database)
    known = ledger.history(database, last, dry_run=False)
    assert [past.action for past in known.past] == ["notify", "regular"]
    assert known.actions_last_hour == 1


def test_an_episode_is_as_old_as_its_first_alert(database, clock):
    acted(database, 1)
    clock.now = NOW + 900
    receive(database, alert("a:1", 1))
    (again,) = waiting(database)
    assert ledger.history(database, again, dry_run=False).first_seen == NOW


def test_the_oldest_refusals_go_and_actions_and_waiting_alerts_stay(database, monkeypatch):
    monkeypatch.setattr(ledger, "KEPT_REFUSALS", 10)
    acted(database, 1)
    receive(database, *(alert("a:1", n, status="resolved") for n in range(30)), alert("a:1", 99))
    ledger.prune(database)
    ids = [row["id"] for row in database.execute("SELECT id FROM alerts")]
    assert ids == [1, *range(22, 32), 32]


def test_the_audit_is_paged_and_filtered(database):
    receive(database, *(alert("a:1", n, status="resolved") for n in range(4)))
    acted(database, 5, instance="b:1")
    receive(database, alert("b:1", 9))
    first = audit.page(database, audit.Filter(limit=4))
    second = audit.page(database, audit.Filter(limit=4, before=first.next))
    assert [row.id for row in first.rows + second.rows] == [6, 5, 4, 3, 2, 1]
    assert second.next is None
    (done,) = audit.page(database, audit.Filter(result="helped")).rows
    assert (done.instance, done.decision, done.action.result) == ("b:1", "act", "helped")
    assert audit.page(database, audit.Filter(decision="close", instance="b:1")).rows == []
