import asyncio
import json
import time

import httpx
import pytest

from heapwatch import lost
from heapwatch.http.signing import SCHEME, Request, check_signature
from heapwatch.lost import Lost
from heapwatch.runtime.labels import machine
from heapwatch_receiver.fetch import FetchError
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.store import Store
from heapwatch_receiver.trainer import force_cleanup
from tests.support.streaming import streaming_client

TARGET = {"resource": "bodies", "component": "dynamic"}
DONE = {"status": "done", "request_id": "r"}


def cleanup(respond):
    """Ask a trainer that answers so for a cleanup."""

    async def asking():
        async with streaming_client(respond) as client:
            return await force_cleanup(
                client, "http://10.0.0.1:7777/metrics", "secret", action="regular", reason="TrainerLeak",
                request_id="r", target=TARGET,
            )  # fmt: skip

    return asyncio.run(asking())


def test_the_trainer_is_asked_at_its_scrape_address_signed_and_not_sent_the_secret():
    def respond(request):
        assert str(request.url) == "http://10.0.0.1:7777/force_cleanup"
        asked = json.loads(request.content)
        assert TARGET.items() <= asked.items()
        assert asked["request_id"] == "r"
        scheme, _, credentials = request.headers["Authorization"].partition(" ")
        assert scheme == SCHEME
        assert "secret" not in str(request.headers)
        signed = Request(request.method, request.headers["Host"], request.url.path, request.content)
        check_signature(credentials, "secret", signed)
        return httpx.Response(200, json={**DONE, "before": {"buffers": {"replay": 5}}, "detail": "x" * 900})

    answer = cleanup(respond)
    assert answer.before.readings() == {"buffer/replay": 5}
    assert len(answer.detail) == 300


@pytest.mark.parametrize(
    ("response", "named", "status"),
    [
        (httpx.Response(302, headers={"Location": "http://evil/"}), "302", 302),
        (httpx.Response(401, json={"error": "wrong token"}), "wrong token", 401),
        (httpx.Response(200, content=b"<html>"), "garbage", None),
        (httpx.Response(200, json={**DONE, "request_id": "2"}), "another request", None),
        (httpx.Response(200, content=json.dumps(DONE)[:-1] + ',"removed":{"x":1e999}}'), "garbage", None),
        (httpx.Response(200, content=b" " * (2 << 20)), "more than", None),
    ],
)
def test_an_answer_that_is_no_cleanup_is_none(response, named, status):
    with pytest.raises(FetchError, match=named) as raised:
        cleanup(lambda _: response)
    assert raised.value.status == status


def metrics_of(folder, lost_dirs=()):
    return Metrics(Store(folder / "ledger.sqlite3"), lost_dirs)


def memory_in_use(folder):
    return metrics_of(folder).registry.get_sample_value(
        "heapwatch_receiver_machine_memory_used_bytes", {"machine": machine()}
    )


def test_the_memory_in_use_on_the_machine_is_served(tmp_path):
    assert memory_in_use(tmp_path) > 1e7


def test_memory_that_cannot_be_read_is_absent(tmp_path, monkeypatch):
    def unreadable():
        raise OSError("no /proc")

    monkeypatch.setattr("psutil.virtual_memory", unreadable)
    assert memory_in_use(tmp_path) is None


def test_trainers_that_were_lost_are_served_with_the_cause(tmp_path):
    lost.write(tmp_path / "targets", Lost("127.0.0.1:7778", "ppo", lost.OUT_OF_MEMORY, time.time()))
    folders = [tmp_path / "targets", tmp_path / "missing"]
    registry = metrics_of(tmp_path, folders).registry
    labels = {
        "trainer_job": "trainer",
        "trainer_instance": "127.0.0.1:7778",
        "trainer": "ppo",
        "cause": "killed by the kernel, out of memory",
    }
    name = "heapwatch_receiver_trainer_lost_timestamp_seconds"
    assert registry.get_sample_value(name, labels) == pytest.approx(time.time(), abs=600)
