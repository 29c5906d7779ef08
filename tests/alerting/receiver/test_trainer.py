import asyncio
import json
import time

import httpx
import pytest

from heapwatch import lost
from heapwatch.http.signing import SCHEME, check_signature
from heapwatch.lost import Lost
from heapwatch.runtime.labels import machine
from heapwatch_receiver.clock import Clock
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.store import Store
from heapwatch_receiver.trainer import Answer, CleanupRefused, force_cleanup
from tests.alerting.receiver.test_ledger import record
from tests.alerting.test_services import streaming_client


def answer(**changes):
    return Answer.model_validate_json(json.dumps({"status": "done", "request_id": "r", **changes}))


def test_long_texts_are_cut_and_cannot_control_a_terminal():
    said = answer(detail="x" * 900_000, errors=["\x1b[2J" + "y" * 900_000] + ["z"] * 5000)
    assert len(said.detail) <= 300
    assert len(said.errors) == 5
    assert all(len(error) <= 310 and error.isprintable() for error in said.errors)


def test_many_names_are_added_up():
    said = answer(removed={f"resource{number}": number for number in range(5000)})
    assert len(said.removed) == 65
    assert sum(said.removed.values()) == sum(range(5000))


def test_absurd_numbers_are_cut():
    said = answer(freed={"resident_memory_bytes": 1e308}, before={"bodies": -1e308})
    assert said.freed.resident_memory_bytes == 1e18
    assert said.before.bodies == -1e18


def test_answers_that_invent_resources_make_no_endless_series(tmp_path):
    clock = Clock()
    metrics = Metrics(Store(tmp_path / "ledger.sqlite3", clock), clock)
    for number in range(100):
        removed = {f"resource{number}-{one}": 1.0 for one in range(60)}
        metrics.finished(record(clock, "r", removed=removed, freed_bytes=1.0), 1.0)
    series = [sample for family in metrics.removed.collect() for sample in family.samples]
    assert sum(sample.name.endswith("_total") for sample in series) == 65
    assert sum(sample.value for sample in series if sample.name.endswith("_total")) == 6000


OLDER_FIELDS = {"action", "reason", "request_id", "timeout_seconds"}
TARGET = {"resource": "bodies", "component": "dynamic"}
DONE = {"status": "done", "request_id": "r"}


def cleanup(respond, target=TARGET):
    """Ask a trainer that answers so for a cleanup."""

    async def asking():
        async with streaming_client(respond) as client:
            return await force_cleanup(
                client, "http://10.0.0.1:7777/metrics", "secret", action="regular", reason="TrainerLeak",
                request_id="r", timeout=5, target=target,
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
        check_signature(
            credentials, "secret", method=request.method, authority=request.headers["Host"],
            path=request.url.path, body=request.content,
        )  # fmt: skip
        return httpx.Response(200, json={**DONE, "before": {"buffers": {"replay": 5}}})

    assert cleanup(respond).before.readings() == {"buffer/replay": 5}


@pytest.mark.parametrize(
    ("response", "named", "retry_after"),
    [
        (httpx.Response(302, headers={"Location": "http://evil/"}), "302", None),
        (httpx.Response(401, json={"error": "wrong token"}), "wrong token", None),
        (httpx.Response(429, headers={"Retry-After": "7"}), "429", 7),
        (httpx.Response(429, headers={"Retry-After": "soon"}), "429", 1),
        (httpx.Response(500), "500", 0),
        (httpx.Response(200, content=b"<html>"), "garbage", 0),
        (httpx.Response(200, json={**DONE, "request_id": "2"}), "another request", 0),
        (httpx.Response(200, content=json.dumps(DONE)[:-1] + ',"removed":{"x":1e999}}'), "garbage", 0),
    ],
)
def test_an_answer_that_is_no_cleanup_is_refused(response, named, retry_after):
    with pytest.raises(CleanupRefused) as raised:
        cleanup(lambda _: response)
    assert named in raised.value.detail
    assert raised.value.retry_after == retry_after


def test_a_trainer_with_an_older_library_is_asked_once_more_without_the_target():
    asked = []

    def older(request):
        asked.append(json.loads(request.content))
        known = asked[-1].keys() <= OLDER_FIELDS
        return httpx.Response(200 if known else 400, json=DONE)

    assert cleanup(older).status == "done"
    assert [one.keys() - OLDER_FIELDS for one in asked] == [{"resource", "component"}, set()]
    asked.clear()
    assert cleanup(older, target={}).status == "done"
    assert len(asked) == 1


def test_a_request_that_is_refused_either_way_is_a_refusal():
    asked = []

    def refusing(request):
        asked.append(request)
        return httpx.Response(400, content=b"no such action")

    with pytest.raises(CleanupRefused, match="answered 400: no such action"):
        cleanup(refusing)
    assert len(asked) == 2


def memory_in_use(tmp_path):
    clock = Clock()
    store = Store(tmp_path / "ledger.sqlite3", clock)
    store.open()
    registry = Metrics(store, clock).registry
    return registry.get_sample_value("heapwatch_receiver_machine_memory_used_bytes", {"machine": machine()})


def test_the_memory_in_use_on_the_machine_is_served(tmp_path):
    assert memory_in_use(tmp_path) > 1e7


def test_memory_that_cannot_be_read_is_absent(tmp_path, monkeypatch):
    def unreadable():
        raise OSError("no /proc")

    monkeypatch.setattr("psutil.virtual_memory", unreadable)
    assert memory_in_use(tmp_path) is None


def test_trainers_that_were_lost_are_served_with_the_cause(tmp_path):
    lost.write(tmp_path / "targets", Lost("127.0.0.1:7778", "ppo", lost.OUT_OF_MEMORY, time.time()))
    lost.write(tmp_path / "silent", Lost("10.0.0.1:7777", "", lost.SILENT, time.time()))
    clock = Clock()
    folders = [tmp_path / "targets", tmp_path / "silent", tmp_path / "missing"]
    registry = Metrics(Store(tmp_path / "ledger.sqlite3", clock), clock, folders).registry
    labels = {
        "trainer_job": "trainer",
        "trainer_instance": "127.0.0.1:7778",
        "trainer": "ppo",
        "cause": "killed by the kernel, out of memory",
    }
    name = "heapwatch_receiver_trainer_lost_timestamp_seconds"
    assert registry.get_sample_value(name, labels) == pytest.approx(time.time(), abs=600)
    labels |= {"trainer_instance": "10.0.0.1:7777", "trainer": "", "cause": lost.SILENT}
    assert registry.get_sample_value(name, labels) is not None
