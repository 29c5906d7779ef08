"""POST /force_cleanup: what it does, who may ask for it, and how often."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from heapwatch.http import signing
from tests.support.served_trainer import TOKEN, Trainer
from tests.support.waiting import wait_for


def test_cleanup_runs_at_the_safe_point_and_answers_what_it_did(trainer):
    trainer.queue.register(lambda action: {"bodies": 3})
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(trainer.cleanup, {"action": "regular", "reason": "a test", "request_id": "one"})
        wait_for(trainer.queue.pending)
        trainer.queue.run_pending()
        response, document = answer.result()
    assert response.status == 200
    assert document["status"] == "done"
    assert document["removed"] == {"bodies": 3}
    assert (document["action"], document["reason"], document["trigger"]) == ("regular", "a test", "http")
    again, repeated = trainer.cleanup({"action": "regular", "request_id": "one"})
    assert (again.status, repeated) == (200, document)
    status = json.loads(trainer.request("GET", "/performance_status")[1])
    assert status["last_cleanup"]["request_id"] == "one"


def test_cleanup_without_a_safe_point_is_pending(trainer):
    response, document = trainer.cleanup({"timeout_seconds": 0, "request_id": "one"})
    assert response.status == 202
    assert document["status"] == "pending"
    assert document["seconds_since_safe_point"] == 12.5
    trainer.cleanup({"timeout_seconds": 0, "request_id": "one"})
    assert trainer.queue.pending() == 1


def test_cleanup_needs_no_body(trainer):
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(trainer.request, "POST", "/force_cleanup", Authorization=f"Bearer {TOKEN}")
        wait_for(trainer.queue.pending)
        trainer.queue.run_pending()
        response, body = answer.result()
    assert (response.status, json.loads(body)["action"]) == (200, "emergency")


@pytest.fixture(params=[TOKEN, None], ids=["with a token", "without one"])
def local(request, monkeypatch):
    """A trainer that lets commands of this machine clean up without its token."""
    monkeypatch.setenv("HEAPWATCH_ALLOWED_HOSTS", "trainer.example")
    running = Trainer(request.param, local_cleanup=True)
    yield running
    running.server.stop()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_a_command_of_this_machine_needs_no_token_where_that_is_allowed(local, host):
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(local.request, "POST", "/force_cleanup", Host=f"{host}:{local.server.port}")
        wait_for(local.queue.pending)
        local.queue.run_pending()
        response, body = answer.result()
    assert (response.status, json.loads(body)["action"]) == (200, "emergency")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:8888"},
        {"Origin": "http://localhost:PORT"},
        {"Origin": "null"},
        {"Origin": ""},
        *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "same-origin", "none")),
        {"Referer": "http://evil.example/page"},
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
        {"Host": "evil.example:PORT"},
        {"Host": "trainer.example:PORT"},
        {"Host": "192.0.2.1:PORT"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": ""},
    ],
    ids=str,
)
def test_a_web_page_and_a_proxy_need_the_token_all_the_same(local, headers):
    port = str(local.server.port)
    sent = {"Host": "localhost:PORT"} | headers
    asked = {name: value.replace("PORT", port) for name, value in sent.items()}
    response, _ = local.request("POST", "/force_cleanup", **asked)
    assert response.status in (401, 403, 421)
    assert local.queue.pending() == 0


def test_a_form_of_a_page_is_refused_where_no_token_is_needed(local):
    response, _ = local.request("POST", "/force_cleanup", "a=b", **{"Content-Type": "text/plain"})
    assert response.status == 415
    assert local.request("GET", "/force_cleanup")[0].status == 405
    assert local.queue.pending() == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Host": "evil.example:7777"}, 421),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else None,
)
def test_a_page_that_knows_the_token_cleans_up_nothing(shared, headers, status):
    assert shared.cleanup(**headers)[0].status == status
    assert shared.queue.pending() == 0


def test_without_being_told_so_a_trainer_asks_everybody_for_its_token(trainer):
    assert trainer.request("POST", "/force_cleanup")[0].status == 401
    assert trainer.queue.pending() == 0


def signed(trainer, body=b"{}", port=None):
    url = f"http://127.0.0.1:{port or trainer.server.port}/force_cleanup"
    return signing.authorization(TOKEN, "POST", url, body)


SIGNED = b'{"timeout_seconds": 0, "request_id": "one"}'


def test_a_signed_cleanup_is_obeyed_once(trainer):
    header = signed(trainer, body=SIGNED)

    def code(body, header=header):
        given = {"Authorization": header, "Content-Type": "application/json"}
        return trainer.request("POST", "/force_cleanup", body, **given)[0].status

    assert code(SIGNED.replace(b"0", b"1")) == 401
    assert code(SIGNED) == code(SIGNED) == 202
    assert trainer.queue.pending() == 1
    assert code(b"{}", signed(trainer)) == 400  # without its own id its repetition would be another cleanup


def test_token_appears_in_no_log(trainer, caplog, capfd):
    caplog.set_level("DEBUG")
    trainer.cleanup({"timeout_seconds": 0})
    trainer.cleanup({"timeout_seconds": 0}, Authorization="Bearer wr0ng-token")
    trainer.raw(f"POST /force_cleanup?token={TOKEN} HTTP/1.1\r\nHost: a b\r\n\r\n".encode())
    logged = caplog.text + "".join(capfd.readouterr())
    assert TOKEN not in logged
    assert "wr0ng-token" not in logged
