from dataclasses import replace

import pytest

from heapwatch_receiver.decide import Act, Alert, AlertHistory, Facts, Past, Refuse, decide, judge, on_sight
from heapwatch_receiver.settings import Settings

SETTINGS = Settings(cooldown=600, actions_per_hour=5)
LABELS = {
    "alertname": "TrainerMemoryHigh",
    "job": "trainer",
    "instance": "a:1",
    "severity": "critical",
    "action": "cleanup",
}
ALERT = Alert(1, 1000.0, "f", "5", None, "firing", LABELS)
HISTORY = AlertHistory(1001, 1000, False, [], 0)
FACTS = Facts([LABELS], "http://a:1/metrics")


def past(
    action: str, ended_ago: float, *, same: bool = True, began: float | None = None, now: float = 1001
) -> Past:
    finished = now - ended_ago
    return Past(action, ("f" if same else "g", "5"), finished if began is None else began, finished)


def reason(
    alert: Alert = ALERT,
    history: AlertHistory = HISTORY,
    facts: Facts | None = FACTS,
    settings: Settings = SETTINGS,
) -> str:
    decision = decide(alert, history, facts, settings)
    return decision.reason if decision else "waits for Prometheus"


def later(seconds: float, *actions: str) -> AlertHistory:
    """The episode's history, some seconds after these actions were done for it, one right after the other."""
    now = 1001 + seconds
    done = [Past(action, ("f", "5"), 1001, 1001) for action in reversed(actions)]
    return replace(HISTORY, now=now, past=done)


def repeated(seconds: float, **labels: str) -> Alert:
    return replace(ALERT, id=2, received_at=1001 + seconds, labels={**LABELS, **labels})


FACTS_LATER = Facts([LABELS, {**LABELS, "level": "emergency"}], "http://a:1/metrics")


def test_the_reason_of_a_further_step_says_nothing_of_what_the_last_one_did():
    """Its row may say that it helped."""
    decision = decide(repeated(700), later(700, "regular"), FACTS_LATER, SETTINGS)
    assert decision == Act("emergency", "still firing after regular", "http://a:1/metrics")


def test_the_first_cleanup_is_a_regular_one():
    assert reason() == "regular"


@pytest.mark.parametrize("label", [{"level": "emergency"}, {"severity": "emergency"}])
def test_an_emergency_starts_with_the_emergency_cleanup(label):
    labels = {**LABELS, **label}
    assert reason(replace(ALERT, labels=labels), facts=Facts([labels], "u")) == "emergency"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"status": "resolved"}, "resolved"),
        ({"labels": {**LABELS, "action": "page"}}, "not_cleanup"),
        ({"labels": {"action": "cleanup", "job": "trainer"}}, "no_trainer"),
    ],
)
def test_an_alert_that_asks_for_nothing(change, expected):
    assert on_sight(replace(ALERT, **change)).reason == expected
    assert on_sight(ALERT) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"resolved_since": True}, "resolved"),
        ({"actions_last_hour": 5}, "budget"),
        ({"past": [past("regular", 10, same=False, began=900)]}, "cooldown"),
        ({"past": [past("regular", 601, same=False)]}, "regular"),
        ({"past": [past("emergency", 10, same=False, began=900)]}, "regular"),
    ],
)
def test_what_was_done_before(change, expected):
    assert reason(history=replace(HISTORY, **change)) == expected


def test_prometheus_has_the_last_word():
    assert decide(ALERT, HISTORY, None, SETTINGS) is None
    assert reason(history=replace(HISTORY, actions_last_hour=5), facts=None) == "budget"
    assert reason(facts=replace(FACTS, firing=[])) == "not_firing"
    assert reason(facts=replace(FACTS, firing=[{**LABELS, "component": "worker"}])) == "not_firing"
    assert reason(facts=replace(FACTS, target=None)) == "no_target"


@pytest.mark.parametrize(("seconds", "expected"), [(599, "regular"), (601, "stale")])
def test_an_alert_that_has_waited_long_is_stale(seconds, expected):
    assert reason(history=replace(HISTORY, now=ALERT.received_at + seconds)) == expected


def test_labels_added_on_the_way_do_not_matter():
    labels = {**LABELS, "cluster": "east"}
    assert reason(replace(ALERT, labels=labels)) == "regular"


def test_a_repeat_within_the_cooldown_is_a_duplicate():
    assert reason(repeated(599), later(599, "regular"), FACTS_LATER) == "duplicate"


def test_a_repeat_after_the_cooldown_climbs_and_never_repeats():
    alert = repeated(601)
    assert reason(alert, later(601, "regular"), FACTS_LATER) == "emergency"
    assert reason(alert, later(601, "regular", "emergency"), FACTS_LATER) == "notify"
    alert = repeated(4000)
    assert reason(alert, later(4000, "regular", "emergency", "notify"), FACTS_LATER) == "exhausted"


def test_a_restart_takes_the_place_of_the_notification_where_there_is_a_command():
    settings = SETTINGS.model_copy(update={"restart_command": ("restart",)})
    assert reason(repeated(601), later(601, "regular", "emergency"), FACTS_LATER, settings) == "restart"
    decision = decide(repeated(601), later(601, "regular", "emergency", "restart"), FACTS_LATER, settings)
    assert decision.decision == "give_up"


def test_an_emergency_does_not_wait_for_the_regular_cooldown():
    assert reason(repeated(1, level="emergency"), later(1, "regular"), FACTS_LATER) == "emergency"


def test_another_alerts_cleanup_since_this_one_began_counts_as_tried():
    other = Past("regular", ("g", "9"), 1001, 1001)
    history = replace(HISTORY, now=1602, past=[other])
    assert reason(repeated(601), history, FACTS_LATER) == "emergency"


def test_the_budget_does_not_keep_people_from_being_notified():
    history = replace(later(601, "regular", "emergency"), actions_last_hour=99)
    assert reason(repeated(601), history, FACTS_LATER) == "notify"


def test_a_trainer_that_takes_no_cleanups_is_asked_once_an_alert():
    refused = Past("regular", ("f", "5"), 1001, 1001, refused=True)
    for seconds in (10, 4000):
        history = replace(HISTORY, now=1001 + seconds, past=[refused])
        assert reason(repeated(seconds), history, FACTS_LATER) == "refused"


@pytest.mark.parametrize(("seconds", "expected"), [(1, "regular"), (-1, "ended")])
def test_an_alert_counts_until_its_end(seconds, expected):
    assert reason(replace(ALERT, ends_at=HISTORY.now + seconds)) == expected


def test_a_refusal_says_how_long_ago_and_how_long_still():
    refusal = decide(ALERT, replace(HISTORY, past=[past("regular", 100)]), FACTS, SETTINGS)
    assert isinstance(refusal, Refuse)
    assert refusal.detail == ("regular was done for this alert 100 s ago, 9 min of its cooldown are left")


DEATHS = {"resource": "events", "component": "death"}
MEMORY = {"resource": "memory", "component": "trainer"}


def verdict(labels, before, after, firing=True):
    return judge(labels, before, after, still_firing=firing)[0]


@pytest.mark.parametrize(
    ("labels", "before", "after", "expected"),
    [
        (MEMORY, {"memory": 2e9}, {"memory": 1e9}, "helped"),
        (MEMORY, {"memory": 2e9}, {"memory": 1.95e9}, "no_effect"),
        (MEMORY, {"memory": 2e9}, {"memory": 3e9}, "no_effect"),
        (MEMORY, {"memory": 2e9, "bodies": 900}, {"memory": 2e9, "bodies": 3}, "no_effect"),
        ({"resource": "bodies"}, {"memory": 2e9, "bodies": 900}, {"memory": 2e9, "bodies": 300}, "helped"),
        ({"resource": "bodies"}, {"bodies": 0}, {"bodies": 0}, "no_effect"),
        (DEATHS, {"events/death": 9, "events/birth": 9}, {"events/death": 9, "events/birth": 1}, "no_effect"),
        ({"resource": "events", "component": ""}, {"events/death": 9}, {"events/death": 1}, "helped"),
        ({"resource": "objects"}, {"memory": 2e9}, {"memory": 1e9}, "helped"),
    ],
)  # fmt: skip
def test_what_the_alert_is_about_must_fall(labels, before, after, expected):
    assert verdict(labels, before, after) == expected


def test_an_alert_that_ended_was_helped():
    assert verdict(MEMORY, {"memory": 2e9}, {"memory": 2e9}, firing=False) == "helped"


def test_nothing_known_is_not_called_an_effect():
    assert verdict(MEMORY, {}, {}, firing=None) == "unverified"
    assert verdict(MEMORY, {"memory": 2e9}, {}, firing=None) == "unverified"
    assert verdict(MEMORY, {"memory": 2e9}, {"memory": 2e9}, firing=None) == "no_effect"
