"""A trainer, or a Prometheus, that lies ends neither the monitor nor the report nor the doctor."""

import argparse
import json
import time

import pytest

from heapwatch.cli import doctor
from heapwatch.cli.monitor import Monitor
from heapwatch.cli.sources import PrometheusSource, TrainerSource
from heapwatch.cli.thresholds import Thresholds
from heapwatch.errors import Unreachable, UsageError
from heapwatch.report.prometheus import read_prometheus
from tests.exporters.cli.lying import lying

WELL = b'trainer_process_resident_memory_bytes{role="trainer"} 1e6\n'
CRITICAL = b"""trainer_process_resident_memory_bytes{role="trainer"} 9e9
trainer_limit{resource="memory",component="trainer",severity="critical"} 1e9
"""
LIES = [
    b'trainer_bodies{type="a"} 1.7e308\ntrainer_bodies{type="b"} 1.7e308\n',
    b"trainer_process_resident_memory_bytes 1e308\nprocess_start_time_seconds NaN\n",
    b'trainer_limit{resource="memory",severity="doom"} 1\ntrainer_limit 5\ntrainer_growth_limit -1e300\n',
    b'trainer_bodies{type="\x1b]0;owned\x07\xc2\x9b2J"} 99999\n',
    b"\xff\xfe\x00",
    b"".join(
        b'trainer_entities{type="t%d"} 1e9\ntrainer_limit{resource="entities",severity="critical"} 1\n' % n
        for n in range(3000)
    ),
    b"x" * 5_000_000,
    CRITICAL,
]
ANSWERS = [
    b"[]",
    b'"done"',
    b"null",
    b"[" * 100_000,
    json.dumps({"status": "done", "freed": 3, "before": [1], "after": "x", "errors": 7}).encode(),
    json.dumps({"status": "pending", "detail": "x" * 900_000}).encode(),
]


@pytest.mark.parametrize("number", range(len(LIES)))
def test_a_lie_of_one_trainer_costs_no_other_its_sample(number):
    answer = ANSWERS[number % len(ANSWERS)]
    with (
        lying({"/metrics": LIES[number], "/force_cleanup": answer}) as liar,
        lying({"/metrics": WELL}) as well,
    ):
        monitor = Monitor(
            TrainerSource([liar.url, well.url]), Thresholds(), interval=1, token="correct-horse"
        )
        for _ in range(2):
            messages = monitor.sample()
            told = [message.text for message in messages if message.instance in well.url]
            assert told == ["Memory=1.0MB", "too early: watched for 0 of 24 minutes"]
            assert len(messages) <= 103
        assert not any("correct-horse" in str(request) for request in liar.seen)


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_to_a_cleanup_ends_the_monitor(answer):
    with lying({"/metrics": CRITICAL, "/force_cleanup": answer}) as liar:
        monitor = Monitor(TrainerSource([liar.url]), Thresholds(), interval=1, token="correct-horse")
        text = "\n".join(message.text for message in monitor.sample())
        assert "EMERGENCY: triggering an emergency cleanup" in text
        assert len(text) < 5000


def test_a_trainer_that_drips_its_headers_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr("heapwatch.http.client.TIMEOUT_SECONDS", 0.5)
    with lying({"/metrics": WELL}, drip=0.05) as liar, lying({"/metrics": WELL}) as well:
        began = time.monotonic()
        slow, good = TrainerSource([liar.url, well.url]).samples()
        assert time.monotonic() - began < 3
    assert "does not answer within 0.5 s" in slow.problem
    assert good.readings is not None


ODD = [
    {"status": "success"},
    {"status": "success", "data": 3},
    {"status": "success", "data": {"result": 3, "activeTargets": 3}},
    {"status": "success", "data": {"result": [3], "activeTargets": [3]}},
    {
        "status": "success",
        "data": {"result": [{"metric": [], "value": {}}], "activeTargets": [{"labels": 1}]},
    },
    {
        "status": "success",
        "data": {"result": [{"metric": {"instance": []}, "value": [1, {}], "values": [[1]]}]},
    },
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_prometheus_that_lies_is_unreachable_or_empty(number, capsys):
    body = json.dumps(ODD[number]).encode()
    paths = ("query", "query_range", "targets")
    with lying({f"/api/v1/{path}": body for path in paths}) as liar:
        messages = Monitor(PrometheusSource(liar.url, "trainer"), Thresholds(), interval=1).sample()
        assert "UNKNOWN" in messages[0].text
        with pytest.raises((Unreachable, UsageError)):
            read_prometheus(liar.url, job="trainer", instance=None, since_seconds=60)
        doctor.run(argparse.Namespace(trainer=liar.url, prometheus=liar.url, json=False))
        assert "FAIL" in capsys.readouterr().out
