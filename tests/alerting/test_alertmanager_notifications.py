"""How often people are notified of a leak: two hours of leaking, through a real Alertmanager.

Every interval, like the replay of what fires, is SPEED times as short. `pytest -s` on this file prints the
messages.
"""

import json
import math
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from heapwatch_stack.alertmanager import render
from tests.support.alerting.harness import Program, stopping
from tests.support.http_client import CLIENT
from tests.support.http_server import serving
from tests.support.ports import free_port
from tests.support.programs import find
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPEED = 240
MINUTES = 120
REPEAT_MINUTES = 240
UNITS = {"s": 1, "m": 60, "h": 3600}


def alert(name, kind, resource, component, severity, *minutes, **more):
    """An alert of a trainer, and its minutes: from, to."""
    labels = {"alertname": name, "kind": kind, "resource": resource, "component": component}
    return {**labels, "job": "trainer", "severity": severity, **more}, minutes


LEAK, LIMIT, GROWTH = "TrainerLeak", "TrainerLimitExceeded", "TrainerGrowthPerMinute"
CLEANUP, EMERGENCY = {"action": "cleanup"}, {"action": "cleanup", "level": "emergency"}
LAST = MINUTES
# What the rules fire of a trainer that leaks memory and bodies, and of one that leaks on after each cleanup.
FIRING = {
    "steady": [
        alert(LEAK, "leak", "memory", "trainer", "critical", (17, LAST), **CLEANUP),
        alert(LEAK, "leak", "bodies", "unknown", "warning", (17, LAST), **CLEANUP),
        alert(LIMIT, "threshold", "memory", "trainer", "warning", (22, LAST)),
        alert(GROWTH, "growth", "bodies", "all", "warning", (27, LAST), per="minute"),
        alert(GROWTH, "growth", "bodies", "unknown", "warning", (27, LAST), per="minute"),
        alert(GROWTH, "growth", "memory", "trainer", "warning", (27, LAST), per="minute"),
        alert(LIMIT, "threshold", "memory", "trainer", "critical", (37, LAST), **CLEANUP),
        alert(LIMIT, "threshold", "memory", "trainer", "critical", (52, LAST), **EMERGENCY),
        alert(LIMIT, "threshold", "bodies", "all", "warning", (35, LAST)),
        alert(LIMIT, "threshold", "bodies", "all", "critical", (65, LAST), **CLEANUP),
        alert(LIMIT, "threshold", "bodies", "all", "critical", (96, LAST), **EMERGENCY),
    ],
    "relapse": [
        alert(LEAK, "leak", "memory", "trainer", "critical", (7, LAST), **CLEANUP),
        alert(LIMIT, "threshold", "memory", "trainer", "warning", (11, 34), (41, 64), (71, 94), (101, LAST)),
        alert(GROWTH, "growth", "memory", "trainer", "warning", (16, 35), (50, 65), (80, 95), (110, LAST)),
        alert(
            LIMIT, "threshold", "memory", "trainer", "critical",
            (24, 29), (54, 59), (84, 89), (114, LAST), **CLEANUP,
        ),
        alert("TrainerCleanupRepeated", "health", "trainer", "cleanup", "warning", (91, LAST)),
    ],
}  # fmt: skip
WATCHDOG = {"alertname": "Watchdog", "component": "watchdog", "kind": "health", "resource": "stack"}


def firing_at(minute):
    """The labels of the alerts that fire then."""
    return [{**WATCHDOG, "severity": "warning"}] + [
        {**labels, "instance": instance}
        for instance, alerts in FIRING.items()
        for labels, minutes in alerts
        if any(first <= minute <= last for first, last in minutes)
    ]


def sped_up(node):
    """A configuration with each interval divided by SPEED."""
    if isinstance(node, list):
        return [sped_up(child) for child in node]
    if not isinstance(node, dict):
        return node
    result = {}
    for key, value in node.items():
        if key in ("group_wait", "group_interval", "repeat_interval"):
            seconds = sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([smh])", value))
            result[key] = f"{max(10, round(1000 * seconds / SPEED))}ms"
        else:
            result[key] = sped_up(value)
    return result


@pytest.fixture
def sink():
    with serving() as server:
        yield server


@pytest.fixture
def alertmanager(tmp_path, sink):
    (tmp_path / "token").write_text("token")
    people = {"webhook_configs": [{"url": f"{sink.url}/people"}]}
    source = ROOT / "alerting" / "alertmanager.yml"
    text = render(source, f"{sink.url}/receiver", tmp_path / "token", people)
    (tmp_path / "templates").symlink_to(ROOT / "alerting" / "templates")
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(sped_up(yaml.safe_load(text))))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={tmp_path}/alertmanager.yml", f"--storage.path={tmp_path}/data"]
    options += [f"--web.listen-address={address}", "--cluster.listen-address="]
    program = Program([find("alertmanager", "prometheus-alertmanager"), *options], tmp_path / "log")
    with stopping(program):
        wait_for(lambda: CLIENT.get(f"http://{address}/-/ready").status_code == 200, "Alertmanager is ready")
        yield f"http://{address}"


def replay(url):
    """Post what fires as Prometheus would, a minute every 60 / SPEED seconds; returns the moment it began."""
    began = time.monotonic()
    since = {}
    for minute in range(MINUTES + 1):
        time.sleep(max(0.0, began + minute * 60 / SPEED - time.monotonic()))
        now = datetime.now(timezone.utc)
        current = {tuple(sorted(labels.items())) for labels in firing_at(minute)}
        ended = [key for key in since if key not in current]
        batch = [(key, since.setdefault(key, now), now + timedelta(hours=1)) for key in current]
        batch += [(key, since.pop(key), now) for key in ended]
        posted = [
            {
                "labels": dict(key),
                "annotations": {"summary": "a summary"},
                "startsAt": start.isoformat(),
                "endsAt": end.isoformat(),
            }
            for key, start, end in batch
        ]
        CLIENT.post(f"{url}/api/v2/alerts", json=posted).raise_for_status()
    return began


def name(labels):
    keys = ("alertname", "severity", "level", "instance", "resource", "component")
    return " ".join(labels[key] for key in keys if key in labels)


def test_one_message_per_leak_in_two_hours(sink, alertmanager):
    leaks = {name(labels) for labels in firing_at(MINUTES) if labels["kind"] == "leak"}
    began = replay(alertmanager)

    received = [(request.at, request.path, json.loads(request.body)) for request in sink.requests]
    reported = {}
    for moment, path, body in received:
        alerts = [name(a["labels"]) for a in body["alerts"] if a["status"] == "firing"]
        minute = (moment - began) * SPEED / 60
        if path == "/people" and alerts:
            print(f"minute {minute:5.0f}: {'; '.join(sorted(alerts))}")
            for alert in alerts:
                reported.setdefault(alert, []).append(minute)
    messages = sum(1 for _, path, body in received if path == "/people" and body["status"] == "firing")
    print(f"{messages} messages to people in {MINUTES} minutes, {len(leaks)} leaks")

    allowed = math.ceil(MINUTES / REPEAT_MINUTES)
    # Memory's message names what leaks beside it, which has none of its own from then on.
    memory = {leak for leak in leaks if "memory trainer" in leak}
    assert {leak: len(reported.get(leak, [])) for leak in memory} == dict.fromkeys(memory, allowed)
    assert max(len(minutes) for minutes in reported.values()) <= allowed
    assert not [alert for alert in reported if "Watchdog" in alert]
    assert any(path == "/receiver/alerts" for _, path, _ in received)
