"""What the check of the examples makes of a run, without running one."""

import pytest

from benchmarks.leaks.scenario import Scenario
from examples.check import __main__ as check
from examples.check.alerts import first_alerts, texts
from examples.check.plan import Run

LEAKING = Run("walker", "unknown", 60, (("bodies", "unknown"),), (("memory", "trainer"),))


def test_a_leak_must_be_named_and_nothing_but_its_consequences():
    unknown, memory, food = ("bodies", "unknown"), ("memory", "trainer"), ("entities", "food_sources")
    assert check.Verdict(LEAKING, {unknown: 40, memory: 50}).right
    assert check.Verdict(LEAKING, {memory: 50}).missed == [unknown]
    assert check.Verdict(LEAKING, {unknown: 40, food: 30}).false == [food]
    assert not check.Verdict(Run("walker"), {memory: 50}).right
    assert check.Verdict(LEAKING, {unknown: 40}).line(100).endswith("bodies/unknown +15 min")


def test_a_run_that_does_not_start_fails_alone(monkeypatch):
    def fail(*_):
        raise RuntimeError("no metrics")

    monkeypatch.setattr(check, "record", fail)
    [verdict] = check.judge_all([LEAKING], 1, 100, 260, None)
    assert not verdict.right
    assert "FAILED no metrics" in verdict.line(100)


@pytest.mark.slow
def test_the_text_of_an_alert_is_read_from_the_rules():
    events = {
        'trainer_event_list_items{list="death"}': [float(min(40 * scrape, 900)) for scrape in range(60)],
        'trainer_event_list_capacity_items{list="death"}': [500.0] * 60,
        'trainer_leak{component="death",reason="bound",resource="events"}': [None] * 20 + [0.0] * 40,
        "process_start_time_seconds{}": [-3600.0] * 60,
    }
    scenario = Scenario("walker", events)
    [((resource, component), (minute, name))] = first_alerts(scenario).items()
    assert (resource, component, name) == ("events", "death", "TrainerLeakPastBound")
    said = texts(scenario, [(minute, name), (2, name)])
    assert "its declared bound is 500" in said.pop(((resource, component), minute, name))
    assert not said
