"""POST /force_cleanup: what it does, who may ask for it, and how often."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from heapwatch.http import signing
from tests.exporters.http.trainer import TOKEN
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


def test_cleanup_guards(trainer):
    def code(**headers):
        return trainer.cleanup({"timeout_seconds": 0}, **headers)[0].status

    assert code(Authorization="Bearer wrong") == 401
    assert code(Origin="http://evil.example") == 403
    assert code(Sec_Fetch_Site="cross-site") == 403
    assert code(Content_Type="text/plain") == 415
    assert trainer.cleanup({"action": "reboot"})[0].status == 400
    assert trainer.cleanup({"reason": "x" * 20_000})[0].status == 413
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
