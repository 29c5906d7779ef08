"""What the receiver asks of others, against services that answer wrongly."""

import asyncio
import sys

import httpx
import pytest

from heapwatch_receiver import follow_up
from heapwatch_receiver.decide import TrainerKey
from heapwatch_receiver.fetch import FetchError, fetch
from heapwatch_receiver.prometheus import Prometheus
from tests.support.streaming import streaming_client

TRAINER = TrainerKey("trainer", "a:1")


URL = "http://10.0.0.1:7777/metrics"


def prometheus(**data) -> Prometheus:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200, json={"status": "success", "data": data[request.url.path.rpartition("/")[2]]}
        )

    return Prometheus(streaming_client(answer), "http://prometheus")


def target(instance: str = "a:1", url: str = URL, **labels: str) -> dict:
    return {"scrapeUrl": url, "labels": {"job": "trainer", "instance": instance, **labels}, "health": "up"}


def facts(targets: list, alerts: list = ()):
    asked = prometheus(targets={"activeTargets": targets}, alerts={"alerts": list(alerts)})
    return asyncio.run(asked.facts(TRAINER))


def test_the_target_is_the_one_that_prometheus_scrapes():
    assert facts([target("b:1", "http://other/metrics"), target()]).target == URL


@pytest.mark.parametrize(
    "targets", [[], [target("b:1")], [target(), target(url="http://10.0.0.2:7777/metrics")]]
)
def test_there_is_no_target_unless_it_is_exactly_one(targets):
    assert facts(targets).target is None


def test_only_firing_alerts_of_the_trainer_count():
    labels = {"alertname": "A", "job": "trainer", "instance": "a:1"}
    alerts = [
        {"labels": labels, "state": "pending"},
        {"labels": {**labels, "instance": "b:1"}, "state": "firing"},
    ]
    assert not facts([], alerts).fires(labels)
    assert facts([], [{"labels": labels, "state": "firing"}]).fires(labels)


@pytest.mark.parametrize("data", [None, [], {"alerts": 3}, {"alerts": [{"labels": {"a": 1}}]}])
def test_an_answer_of_another_form_is_none(data, caplog):
    assert asyncio.run(prometheus(targets={"activeTargets": []}, alerts=data).facts(TRAINER)) is None
    assert "no usable answer" in caplog.text


def test_answers_are_bounded_in_size_and_time():
    async def forever():
        while True:
            yield b"x" * 1000

    async def slowly():
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    for stream, named in ((forever, "more than 5000 bytes"), (slowly, "no complete answer")):
        asked = fetch(
            streaming_client(lambda _, s=stream: httpx.Response(200, content=s())),
            "GET",
            URL,
            timeout=0.3,
            max_bytes=5000,
        )
        with pytest.raises(FetchError, match=named):
            asyncio.run(asked)


def run(*command: str, instance: str = "a:1") -> str:
    return asyncio.run(follow_up.restart(command, TrainerKey("trainer", instance)))


def test_a_restart_command_gets_the_labels_as_arguments():
    code = "import os, sys; print(sys.argv[1:], 'HEAPWATCH_TOKEN' in os.environ)"
    assert run(sys.executable, "-c", code, "{job}", "x-{instance}") == "['trainer', 'x-a:1'] False"


@pytest.mark.parametrize("instance", ["-rf", "a b", "$(reboot)", "a;b", "", "../x"])
def test_a_label_that_could_be_more_than_an_argument_is_refused(instance):
    with pytest.raises(follow_up.EscalationError, match="not put into a command"):
        run("echo", "{instance}", instance=instance)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("false",), "exited with 1"),
        (("sleep", "60"), "did not end"),
        (("/no/such/program",), "No such file"),
    ],
)
def test_a_restart_command_that_fails_says_so(monkeypatch, command, named):
    monkeypatch.setattr(follow_up, "RESTART_SECONDS", 0.2)
    with pytest.raises(follow_up.EscalationError, match=named):
        run(*command)
