import json

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.explain.findings import Explanation, message
from heapwatch.http.status import Status, landing_page
from heapwatch.judge.component import Component
from heapwatch.judge.memory import TimeLeft
from heapwatch.judge.trainer import Leak

HEALTHY = Explanation("healthy", 60.0, 0.0, 1.0)

TEXT = """
trainer_info{trainer="walker",framework="torch",run="7"} 1
trainer_process_resident_memory_bytes{role="trainer"} 1.2e9
trainer_process_resident_memory_bytes{role="worker"} 3e8
trainer_process_cpu_seconds_total{role="trainer"} %(cpu)s
trainer_memory_limit_bytes 8e9
trainer_bodies{type="static"} 1
trainer_bodies{type="dynamic"} %(dynamic)s
trainer_entities{type="food_sources"} 67
trainer_event_list_items{list="death"} 12
trainer_event_list_capacity_items{list="death"} 100
trainer_buffer_items{buffer="replay"} 50
trainer_buffer_bytes{buffer="replay"} 5e6
trainer_buffer_capacity_bytes{buffer="replay"} NaN
trainer_progress_total{unit="step"} 15440
trainer_last_progress_timestamp_seconds 990
trainer_limit{resource="memory",component="",severity="warning"} 1e9
trainer_limit{resource="memory",component="",severity="critical"} 1.5e9
trainer_limit{resource="bodies",component="all",severity="critical"} 1000
trainer_limit{resource="entities",component="food_sources",severity="warning"} 50
trainer_growth_limit{resource="bodies",component="all",per="minute"} 10
trainer_growth_limit{resource="memory",component="",per="epoch"} 1
trainer_exporter_sample_age_seconds{collector="bodies"} 2.5
"""


def families(dynamic=154, cpu=0):
    return list(parse(TEXT % {"dynamic": dynamic, "cpu": cpu}))


def test_document_reports_what_is_known_and_omits_the_rest():
    document = Status(lambda: HEALTHY, clock=lambda: 1000.0).document(families())
    assert document["trainer"] == {"trainer": "walker", "framework": "torch", "run": "7"}
    assert document["performance"] == {"memory_mb": 1200, "step_count": 15440, "seconds_since_progress": 10}
    assert document["entities"] == {
        "world_bodies": 155,
        "static_bodies": 1,
        "dynamic_bodies": 154,
        "food_sources": 67,
    }
    assert document["body_types"] == {"static": 1, "dynamic": 154}
    assert document["memory"]["resident_bytes"] == {"trainer": 1.2e9, "worker": 3e8}
    assert document["events"] == {"death": {"items": 12, "capacity_items": 100}}
    assert document["buffers"] == {"replay": {"items": 50, "bytes": 5e6}}  # NaN is not known
    assert document["sample_age_seconds"] == {"bodies": 2.5}
    assert document["last_cleanup"] is None
    assert {"objects", "gpu_memory", "growth_per_minute"}.isdisjoint(document)
    json.dumps(document, allow_nan=False)


def test_empty_exposition_gives_no_zero():
    document = Status(lambda: HEALTHY, clock=lambda: 1000.0).document([])
    assert document == {
        "timestamp": 1000.0,
        "training": "unknown",
        "leaks": {"verdict": "healthy", "message": message(HEALTHY)},
        "alerts": [],
        "last_cleanup": None,
    }


def test_alerts_are_the_highest_limit_reached():
    alerts = Status(lambda: HEALTHY, clock=lambda: 1000.0).document(families())["alerts"]
    assert [(a["severity"], a["kind"], a["resource"], a["component"], a["limit"]) for a in alerts] == [
        ("warning", "threshold", "memory", "trainer", 1e9),
        ("warning", "threshold", "entities", "food_sources", 50),
    ]


def test_growth_over_many_samples_is_reported_and_alerts():
    now = [0.0]
    status = Status(lambda: HEALTHY, clock=lambda: now[0])
    for index in range(20):
        now[0] = 20.0 * index
        status.observe(families(dynamic=100 + 5 * index, cpu=10 * index))
    document = status.document(families(dynamic=200, cpu=200))
    assert document["growth_per_minute"]["bodies"]["all"] == pytest.approx(15)
    assert document["growth_per_minute"]["memory"]["trainer"] == 0
    assert document["performance"]["cpu_percent"] == 50
    growth = [alert for alert in document["alerts"] if alert["kind"] == "growth"]
    assert [(alert["resource"], alert["component"], alert["limit"]) for alert in growth] == [
        ("bodies", "all", 10)
    ]


@pytest.mark.parametrize(
    ("profile", "unit", "limit"),
    [
        ("erl-trading", "generation", 5e9),
        ("erl-trading-aggressive", "generation", 500e6),
        ("fire-dqn", "episode", 10e6),
    ],
)
def test_growth_a_cycle_over_the_limit_of_a_profile_alerts_without_a_stack(profile, unit, limit):
    def alerts(per_cycle):
        now = [0.0]
        status = Status(lambda: HEALTHY, clock=lambda: now[0])
        for count in range(6):
            now[0] = 900.0 * count
            exposed = parse(
                f'trainer_limit_profile{{profile="{profile}"}} 1\n'
                f'trainer_progress_total{{unit="{unit}"}} {count}\n'
                f'trainer_process_resident_memory_bytes{{role="trainer"}} {1e9 + per_cycle * count}\n'
            )
            found = status.document(exposed)["alerts"]
        return [alert for alert in found if alert["kind"] == "growth"]

    assert alerts(limit) == []
    assert alerts(limit + 1) == [
        {
            "severity": "warning", "kind": "growth", "resource": "memory", "component": "trainer",
            "value": limit + 1, "limit": limit, "per": unit,
        }
    ]  # fmt: skip


def test_limits_of_a_minute_and_of_a_cycle_hold_for_one_level():
    now = [0.0]
    status = Status(lambda: HEALTHY, clock=lambda: now[0])
    for count in range(12):
        now[0] = 30.0 * count
        found = status.document(
            parse(
                'trainer_growth_limit{resource="memory",component="trainer",per="minute"} 1e6\n'
                'trainer_growth_limit{resource="memory",component="trainer",per="epoch"} 2e6\n'
                f'trainer_progress_total{{unit="epoch"}} {count}\n'
                f'trainer_process_resident_memory_bytes{{role="trainer"}} {1e9 + 3e6 * count}\n'
            )
        )["alerts"]
    assert {alert["per"]: alert["value"] for alert in found} == {"minute": 6e6, "epoch": 3e6}


def test_steps_a_second_are_reported_once_two_samples_know_them():
    now = [0.0]
    status = Status(lambda: HEALTHY, clock=lambda: now[0])
    status.observe(families())
    assert "fps" not in status.document(families())["performance"]
    now[0] = 10.0
    later = list(parse(TEXT.replace("15440", "15740") % {"dynamic": 1, "cpu": 0}))
    assert status.document(later)["performance"]["fps"] == 30
    now[0] = 20.0
    restarted = list(parse(TEXT.replace("15440", "5") % {"dynamic": 1, "cpu": 0}))
    assert status.document(restarted)["performance"]["fps"] == 30  # not a negative rate


def test_what_leaks_is_quoted_from_the_explanation():
    leaks = (
        Leak(Component("bodies", "dynamic"), "growth", 20.0, 690.0),
        Leak(Component("events", "death"), "bound", 0.0, 1300.0, 1000.0),
        Leak(Component("buffer", "replay"), "graphs", 0.0, 900.0),
    )
    leaking = Explanation("leak", 600.0, 2e7, 0.0, time_left=TimeLeft(600.0, 900.0), leaks=leaks)
    document = Status(lambda: leaking).document(families())
    assert document["leaks"]["verdict"] == "leak"
    assert document["leaks"]["message"] == message(leaking)
    assert document["leaks"]["growth_per_minute"]["bodies"] == {"dynamic": 20.0}
    assert document["leaks"]["time_to_limit_seconds"] == {"least": 600.0, "most": 900.0}
    alerts = [alert for alert in document["alerts"] if alert["kind"] in ("leak", "graphs")]
    assert [(alert["severity"], alert["component"], alert["limit"]) for alert in alerts] == [
        ("warning", "dynamic", 0),
        ("warning", "death", 1000),
        ("warning", "replay", 0),
    ]


@pytest.mark.parametrize(("grown", "severities"), [(30e9, []), (36e9, ["warning"]), (101e9, ["critical"])])
def test_growth_over_a_run_is_held_against_the_limits_of_its_profile(grown, severities):
    exposed = parse(
        'trainer_limit_profile{profile="erl-trading"} 1\n'
        "trainer_memory_baseline_bytes 4e9\n"
        f'trainer_process_resident_memory_bytes{{role="trainer"}} {4e9 + grown}\n'
    )
    alerts = Status(lambda: HEALTHY).document(exposed)["alerts"]
    assert [alert["severity"] for alert in alerts if alert["component"] == "since start"] == severities


def test_a_buffer_within_its_limit_of_items_is_no_alert_however_many_bytes_it_holds():
    exposed = parse(
        'trainer_limit_profile{profile="fire-dqn"} 1\n'
        'trainer_buffer_items{buffer="experience"} 20\n'
        'trainer_buffer_bytes{buffer="experience"} 4800000\n'
    )
    assert Status(lambda: HEALTHY).document(exposed)["alerts"] == []


def test_names_from_user_data_are_escaped():
    page = landing_page(
        {"trainer": {"trainer": "<script>"}, "leaks": {"verdict": "leak", "message": "<img>"}}
    )
    assert "<script>" not in page
    assert "<img>" not in page
    assert "Verdict: leak: &lt;img&gt;" in page
