"""A web page in the user's browser, which reaches every port of the machine."""

from __future__ import annotations

import httpx

from heapwatch.stack.services import NO_OTHER_ORIGIN
from tests.alerting.faults.stage import Stage
from tests.alerting.harness import HEADERS, Prometheus, alert, notification, stopping
from tests.attacks.programs import real_trainer
from tests.attacks.record import Exchange, attack

EVIL = ("evil.example", "evil.example:9095", "127.0.0.1.evil.example", "")


@attack("a page that makes its own name point to the trainer (DNS rebinding)")
def trainer_host(stage: Stage, exchange: Exchange) -> None:
    with real_trainer(stage.folder("trainer")) as trainer:
        for path in ("/", "/metrics", "/performance_status", "/healthz"):
            answer = httpx.get(trainer.url + path, headers={"Host": "evil.example:7777"}, timeout=10)
            exchange.sent(f"GET {path}, Host: evil.example:7777")
            exchange.back(f"{answer.status_code} {answer.text.strip()}")
            assert answer.status_code == 403


@attack("a page that makes its own name point to the receiver, also where it listens on 0.0.0.0", quick=False)
def receiver_host(stage: Stage, exchange: Exchange) -> None:
    for bind in ("127.0.0.1", "0.0.0.0"):
        receiver = stage.receiver(bind=bind).start()
        for host in EVIL:
            codes = [
                httpx.get(f"{receiver.url}{path}", headers={"Host": host}, timeout=10).status_code
                for path in ("/", "/actions", "/metrics", "/healthz")
            ]
            exchange.sent(f"to {bind}: GET / /actions /metrics /healthz, Host: {host!r}")
            exchange.back(codes)
            assert set(codes) <= {400, 421}
        receiver.program.stop()


@attack("a page that reads Prometheus across origins")
def prometheus_origin(stage: Stage, exchange: Exchange) -> None:
    prometheus = Prometheus(stage.folder("prometheus"), options=[f"--web.cors.origin={NO_OTHER_ORIGIN}"])
    with stopping(prometheus.program):
        for origin in ("https://evil.example", "http://127.0.0.1:8080", "null"):
            answer = httpx.get(
                f"{prometheus.url}/api/v1/label/__name__/values", headers={"Origin": origin}, timeout=10
            )
            exchange.sent(f"GET /api/v1/label/__name__/values, Origin: {origin}")
            exchange.back(f"Access-Control-Allow-Origin: {answer.headers.get('access-control-allow-origin')}")
            assert "access-control-allow-origin" not in answer.headers


@attack("a page that posts an alert to the receiver", quick=False)
def receiver_post(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    for what, headers, expected in (
        ("without a token, as text/plain", {"Content-Type": "text/plain"}, 401),
        ("as a form, with a token", {**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}, 415),
    ):
        answer = httpx.post(
            f"{receiver.url}/alerts", json=notification(alert("a:1")), headers=headers, timeout=10
        )
        exchange.sent(f"POST /alerts {what}")
        exchange.back(f"{answer.status_code} {answer.text}")
        assert answer.status_code == expected
    assert not receiver.rows()
    receiver.program.stop()
