"""`/targets` as trainers and Prometheus use it; who is registered, for how long, and who fell silent."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from heapwatch import lost
from heapwatch.http import signing
from heapwatch_receiver import targets
from heapwatch_receiver.targets import LIFETIME, Registrations, TooManyTrainers, add_routes

TOKEN = "a-token-for-tests"
URL = "http://10.0.0.9:9095/targets"
TRAINER: dict[str, object] = {"port": 7777, "hosts": ["10.0.0.5"]}


class Receiver:
    """An application with these routes alone, asked from 10.0.0.5."""

    def __init__(self, lost_dir: Path) -> None:
        self.now = 0.0
        app = FastAPI()
        add_routes(app, Registrations(lost_dir, lambda: self.now), TOKEN, {"stack", "stack:19095"}, {9090})
        self.client = TestClient(app, base_url="http://10.0.0.9:9095", client=("10.0.0.5", 50000))
        self.now = 3600.0

    def post(self, body: object, secret: str = TOKEN, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        signed = {"Authorization": signing.authorization(secret, "POST", URL, content)}
        return self.client.post("/targets", content=content, headers={**signed, **headers})

    def targets(self) -> object:
        return self.client.get("/targets").json()


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(tmp_path)


def test_a_trainer_registers_the_address_that_it_has_and_takes_it_back(receiver: Receiver) -> None:
    answer = receiver.post(TRAINER)
    assert (answer.status_code, answer.json()["address"]) == (200, "10.0.0.5:7777")
    assert answer.json()["expires_in_seconds"] == LIFETIME
    assert receiver.targets() == [{"targets": ["10.0.0.5:7777"], "labels": {}}]
    assert receiver.post({**TRAINER, "ends": True}).status_code == 200
    assert receiver.targets() == [{"targets": [], "labels": {}}]


@pytest.mark.parametrize(
    ("headers", "secret", "reason"),
    [
        ({"Authorization": ""}, TOKEN, "signed with the stack's token"),
        ({"Authorization": f"Bearer {TOKEN}"}, TOKEN, "signed with the stack's token"),
        ({}, "another", "made with another token"),
        ({"Authorization": f"{signing.SCHEME} nonsense"}, TOKEN, "must come"),
    ],
)
def test_who_does_not_know_the_token_registers_nothing(
    receiver: Receiver, headers: Mapping[str, str], secret: str, reason: str
) -> None:
    answer = receiver.post(TRAINER, secret, **headers)
    assert answer.status_code == 401
    assert reason in answer.json()["detail"]
    assert receiver.targets() == [{"targets": [], "labels": {}}]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "port: Field required"),
        ({"port": 0}, "port: "),
        ({"port": 22}, "port: "),
        ({"port": "7777"}, "port: "),
        ({**TRAINER, "host": "example.com"}, "host: Extra inputs"),
        ({"port": 7777}, "hosts: Field required"),
        ({"port": 7777, "hosts": []}, "hosts: "),
        ([], "body: "),
        (b"nonsense", "body: Invalid JSON"),
    ],
)
def test_bad_input_is_answered_with_what_is_allowed(receiver: Receiver, body: object, reason: str) -> None:
    answer = receiver.post(body)
    assert answer.status_code == 400
    assert reason in answer.json()["detail"]
    assert '{"port": 7777, "hosts": ["10.0.0.5"], "ends": false}' in answer.json()["detail"]


def test_a_large_body_is_refused(receiver: Receiver) -> None:
    assert receiver.post(b" " * 2000).status_code == 413


def test_a_trainer_too_many_is_rejected_for_now(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MOST", 1)
    receiver.post(TRAINER)
    answer = receiver.post({**TRAINER, "port": 7778})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "180")


def test_prometheus_keeps_its_targets_when_the_receiver_has_just_started(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path)
    receiver.now = 1.0
    receiver.post(TRAINER)
    assert receiver.client.get("/targets").status_code == 503


@pytest.mark.parametrize(
    ("called", "code"),
    [
        ("http://10.0.0.9:9095/targets", 200),
        ("http://stack:9095/targets", 200),
        ("http://stack:19095/targets", 200),  # forwarded by a proxy, and named
        ("http://stack:9096/targets", 421),
        ("http://127.0.0.1:9095/targets", 421),
        ("http://10.0.0.66:9095/targets", 421),
    ],
)
def test_what_was_signed_for_another_receiver_is_refused(receiver: Receiver, called: str, code: int) -> None:
    body = json.dumps(TRAINER).encode()
    signed = signing.authorization(TOKEN, "POST", called, body)
    headers = {"Authorization": signed, "Host": called.split("/")[2]}
    assert receiver.post(body, **headers).status_code == code
    assert receiver.targets() == [{"targets": ["10.0.0.5:7777"] if code == 200 else [], "labels": {}}]


def test_a_service_of_the_stack_is_no_trainer(receiver: Receiver) -> None:
    assert receiver.post({**TRAINER, "port": 9090}).status_code == 200  # of another machine
    receiver.client = TestClient(
        receiver.client.app, base_url="http://10.0.0.9:9095", client=("10.0.0.9", 50000)
    )
    assert receiver.post({"port": 9090, "hosts": ["10.0.0.9"]}).status_code == 400
    assert receiver.post({"port": 9091, "hosts": ["10.0.0.9"]}).status_code == 200


def test_a_registration_that_another_machine_passes_on_is_refused(receiver: Receiver) -> None:
    answer = receiver.post({"port": 7777, "hosts": ["10.0.0.7", "gpu-7"]})
    assert answer.status_code == 403
    assert "at 10.0.0.7, gpu-7, and comes from 10.0.0.5" in answer.json()["detail"]
    assert receiver.targets() == [{"targets": [], "labels": {}}]
    behind_nat = {"port": 7777, "hosts": ["10.0.0.7", "10.0.0.5"]}
    assert receiver.post(behind_nat).status_code == 200


def test_the_list_is_read_in_the_thread_that_registers(tmp_path: Path) -> None:
    class Known(Registrations):
        def addresses(self) -> list[str]:
            asyncio.get_running_loop()  # raises in any other thread
            return []

    app = FastAPI()
    add_routes(app, Known(tmp_path), TOKEN, set(), set())
    assert TestClient(app).get("/targets").json() == [{"targets": [], "labels": {}}]


def test_one_sender_leaves_room_for_another(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MOST_FROM_ONE", 2)
    codes = [receiver.post({**TRAINER, "port": port}).status_code for port in (2001, 2002, 2003, 2001, 2002)]
    assert codes == [200, 200, 429, 200, 200]
    receiver.client = TestClient(receiver.client.app, base_url="http://10.0.0.9:9095", client=("10.0.0.6", 1))
    assert receiver.post({"port": 2001, "hosts": ["10.0.0.6"]}).status_code == 200


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def known(time: Time, tmp_path: Path) -> Registrations:
    """Registrations of a receiver that has run for long."""
    known = Registrations(tmp_path, time)
    time.now += 3600
    return known


def test_a_registration_expires_unless_it_is_renewed(time: Time, known: Registrations) -> None:
    known.add("10.0.0.1:7777")
    known.add("10.0.0.2:7777")
    time.now += LIFETIME - 1
    known.add("10.0.0.2:7777")
    assert known.addresses() == ["10.0.0.1:7777", "10.0.0.2:7777"]
    time.now += 1
    assert known.addresses() == ["10.0.0.2:7777"]


def test_what_ends_is_gone_at_once_and_not_lost_and_may_end_twice(
    time: Time, known: Registrations, tmp_path: Path
) -> None:
    known.add("10.0.0.1:7777")
    known.remove("10.0.0.1:7777")
    known.remove("10.0.0.1:7777")
    assert known.addresses() == []
    time.now += LIFETIME
    known.addresses()
    assert lost.read(tmp_path) == []


def test_the_list_is_not_given_out_before_trainers_had_time_to_renew(time: Time, tmp_path: Path) -> None:
    fresh = Registrations(tmp_path, time)
    fresh.add("10.0.0.1:7777")
    time.now += targets.RENEWAL_SECONDS
    assert fresh.addresses() is None
    time.now += targets.RENEWAL_SECONDS
    assert fresh.addresses() == ["10.0.0.1:7777"]


def test_the_count_is_bounded_and_who_is_in_may_renew(
    time: Time, known: Registrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "MOST", 9)
    for number in range(9):
        known.add(f"10.0.0.1:{number}")
    with pytest.raises(TooManyTrainers, match="9 trainers are registered"):
        known.add("10.0.0.2:7777")
    known.add("10.0.0.1:7")
    time.now += LIFETIME
    known.add("10.0.0.2:7777")
    assert known.addresses() == ["10.0.0.2:7777"]


def test_a_trainer_that_is_late_is_lost_until_it_renews_also_after_it_expired(
    time: Time, known: Registrations, tmp_path: Path
) -> None:
    known.add("10.0.0.1:7777")
    time.now += targets.RENEWAL_SECONDS + 10
    known.addresses()
    assert lost.read(tmp_path) == []
    time.now += 10
    assert known.addresses() == ["10.0.0.1:7777"]  # and is still scraped
    (silent,) = lost.read(tmp_path)
    assert (silent.address, silent.cause) == ("10.0.0.1:7777", lost.SILENT)
    time.now += LIFETIME
    assert known.addresses() == []
    assert [one.address for one in lost.read(tmp_path)] == ["10.0.0.1:7777"]
    known.add("10.0.0.1:7777")
    assert lost.read(tmp_path) == []
