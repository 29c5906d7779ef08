"""How often people are told of a leak: two hours of leaking, through the real rules and a real Alertmanager.

The rules run over the two hours at their own pace in promtool; what fires is replayed into Alertmanager,
where every interval, like the replay itself, is SPEED times as short. `pytest -s` on this file prints the
messages.
"""

import json
import math
import re
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import httpx
import pytest
import yaml

from heapwatch_stack.alertmanager import render
from tests.alerting.harness import Program, find, stopping, wait_for
from tests.support.http_server import serving
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPEED = 240
MINUTES = 120
REPEAT_MINUTES = 240
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
UNITS = {"s": 1, "m": 60, "h": 3600}


def leaking_trainers():
    """Four samples a minute. `steady` leaks memory and bodies; `relapse` leaks on after each cleanup."""

    def target(instance, **labels):
        return ",".join(f'{k}="{v}"' for k, v in {"job": "trainer", "instance": instance, **labels}.items())

    n = MINUTES * 4
    saw = " ".join("700e6+9e6x119" for _ in range(MINUTES // 30))
    rss, cleanups = "trainer_process_resident_memory_bytes", "trainer_cleanups_total"
    series = {
        f"{rss}{{{target('steady', role='trainer')}}}": f"700e6x40 700e6+8e6x{n}",
        f"trainer_bodies{{{target('steady', type='unknown')}}}": f"0x40 0+4x{n}",
        f"trainer_bodies{{{target('steady', type='dynamic')}}}": f"155x{n}",
        f"trainer_memory_limit_bytes{{{target('steady')}}}": f"16e9x{n}",
        f"{rss}{{{target('relapse', role='trainer')}}}": saw,
        f"trainer_memory_limit_bytes{{{target('relapse')}}}": f"16e9x{n}",
        f"{cleanups}{{{target('relapse', action='emergency', trigger='http')}}}": "0x119 1x119 2x119 3x119",
        f"{rss}{{{target('healthy', role='trainer')}}}": f"738e6x{n}",
    }
    for instance in ("steady", "relapse", "healthy"):
        series[f"process_start_time_seconds{{{target(instance)}}}"] = f"-7200x{n}"
        series[f"up{{{target(instance)}}}"] = f"1x{n}"
        series[f"trainer_limit_profile{{{target(instance, profile='walker')}}}"] = f"1x{n}"
        series[f"trainer_cleanup_functions{{{target(instance)}}}"] = f"1x{n}"
        series[f"trainer_progress_total{{{target(instance, unit='episode')}}}"] = f"100+10x{n}"
    return series


def firing_by_minute(folder):
    """The labels of the alerts that fire at each minute, as the rules see it."""
    inputs = [{"series": key, "values": values} for key, values in leaking_trainers().items()]
    test = {
        "rule_files": [str(ROOT / "prometheus" / "rules" / "*.yml")],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "15s",
                "input_series": inputs,
                "promql_expr_test": [
                    {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m", "exp_samples": []}
                    for minute in range(MINUTES + 1)
                ],
            }
        ],
    }
    file = folder / "replay_test.yml"
    file.write_text(yaml.safe_dump(test, width=10**9))
    done = subprocess.run(
        [find("promtool"), "test", "rules", str(file)], text=True, capture_output=True, check=False
    )
    firing, minute = {minute: [] for minute in range(MINUTES + 1)}, None
    for line in (done.stdout + done.stderr).splitlines():
        if at := re.search(r"expr: .*time: ([0-9hms]+)", line):
            minute = sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([hms])", at[1])) // 60
        for labels in re.findall(r"\{[^{}]*alertname=[^{}]*\}", line):
            found = dict(LABEL.findall(labels))
            firing[minute].append({k: v for k, v in found.items() if k not in ("__name__", "alertstate")})
    return firing


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
        wait_for(lambda: httpx.get(f"http://{address}/-/ready").status_code == 200, "Alertmanager is ready")
        yield f"http://{address}"


def replay(url, firing):
    """Post what fires as Prometheus would, a minute every 60 / SPEED seconds; returns the moment it began."""
    client = httpx.Client(base_url=url, timeout=10)  # making one takes long
    began = time.monotonic()
    since = {}
    for minute, alerts in firing.items():
        time.sleep(max(0.0, began + minute * 60 / SPEED - time.monotonic()))
        now = datetime.now(timezone.utc)
        current = {tuple(sorted(labels.items())) for labels in alerts}
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
        client.post("/api/v2/alerts", json=posted).raise_for_status()
    return began


def name(labels):
    keys = ("alertname", "severity", "level", "instance", "resource", "component")
    return " ".join(labels[key] for key in keys if key in labels)


def test_one_message_per_leak_in_two_hours(tmp_path, sink, alertmanager):
    firing = firing_by_minute(tmp_path)
    leaks = {name(labels) for alerts in firing.values() for labels in alerts if labels["kind"] == "leak"}
    assert any("memory" in leak for leak in leaks)
    assert any("bodies unknown" in leak for leak in leaks)
    began = replay(alertmanager, firing)

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
    assert not [alert for alert in reported if "healthy" in alert]
    assert not [alert for alert in reported if "Watchdog" in alert]
    assert any(path == "/receiver/alerts" for _, path, _ in received)
