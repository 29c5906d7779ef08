"""Somebody takes the port of a trainer that was killed, and waits for what the stack sends there."""

from __future__ import annotations

import time

import httpx

from tests.alerting.harness import TOKEN, alert, wait_for
<<<<<<< HEAD
from tests.alerting.stage import Stage
from tests.attacks.programs import asked, heapwatch, printed, real_trainer, recording_trainer
from tests.attacks.record import Exchange, NotHere, attack
=======
from tests.attacks.programs import asked, heapwatch, real_trainer, recording_trainer
from tests.attacks.record import Exchange, attack
>>>>>>> less-a2
from tests.support.http_server import Request, Server


def _without_secret(server: Server, exchange: Exchange) -> Request:
    last = asked(server)[-1]
    exchange.back(
        f"to the process in its place: POST {last.path}, Authorization: {last.headers['Authorization']}"
    )
    for request in asked(server):
        assert TOKEN not in str(request.headers)
        assert TOKEN.encode() not in request.body
    return last


def _refused(stage: Stage, exchange: Exchange, caught: Request) -> None:
    """What that process got is of no use with another trainer that knows the same token."""
    path, headers, body = caught.path, dict(caught.headers), caught.body
    with real_trainer(stage.folder("trainer")) as other:
        answer = httpx.post(other.url + path, content=body, headers=headers, timeout=15)
        exchange.answered("the same request, passed on to another trainer of the stack", answer, 421)


@attack("a dead trainer's port, taken by another process, and the receiver acts", quick=False)
def receiver(stage: Stage, exchange: Exchange) -> None:
    trainer = stage.trainer()
    trainer.stop()
    running = stage.receiver().start()
    with recording_trainer(trainer.port) as server:
        wait_for(lambda: stage.prometheus.fires(trainer), "the process in its place is over its limit")
        exchange.sent("9 GB of memory, from the dead trainer's port")
        running.post(alert(trainer.instance))
        wait_for(lambda: asked(server), "the receiver asks it to clean up", 30)
        caught = _without_secret(server, exchange)
    _refused(stage, exchange, caught)


@attack("a dead trainer's port, taken by another process, and monitor --auto-cleanup acts", quick=False)
def monitor(stage: Stage, exchange: Exchange) -> None:
    with recording_trainer() as server:
        port = server.port
        with heapwatch(
            stage.folder("monitor"), "monitor", "--auto-cleanup", "--interval", 0.2, f"127.0.0.1:{port}"
        ):
            exchange.sent("9 GB of memory, from the dead trainer's port")
            wait_for(lambda: asked(server), "the monitor asks it to clean up", 30)
        caught = _without_secret(server, exchange)
    _refused(stage, exchange, caught)


@attack("a signed request, replayed, changed or late")
def replay(stage: Stage, exchange: Exchange) -> None:
    from heapwatch.http import signing

    with real_trainer(stage.folder("trainer")) as trainer:
        url, body = f"{trainer.url}/force_cleanup", b'{"timeout_seconds": 10, "request_id": "one"}'
        header = signing.authorization(TOKEN, "POST", url, body)
        late = signing.authorization(TOKEN, "POST", url, body, clock=lambda: time.time() - 3600)
        forged = signing.authorization("guessed", "POST", url, body)
        for what, authorization, content, expected in (
            ("signed", header, body, (200,)),
            ("the same again", header, body, (200,)),
            ("the same with another body", header, b'{"action": "emergency"}', (401,)),
            ("signed an hour ago", late, body, (401,)),
            ("signed with a guessed token", forged, body, (401,)),
        ):
            headers = {"Authorization": authorization, "Content-Type": "application/json"}
            answer = httpx.post(url, content=content, headers=headers, timeout=15)
            exchange.answered(what, answer, *expected)
        exchange.back("the cleanup was done once")
        assert trainer.value('trainer_cleanups_total{action="emergency",trigger="http"}') == 1


@attack("Alertmanager's token, stolen, tried on a trainer")
def stolen_webhook_token(stage: Stage, exchange: Exchange) -> None:
    from heapwatch.http.signing import webhook_token

    with real_trainer(stage.folder("trainer")) as trainer:
        answer = trainer.cleanup(Authorization=f"Bearer {webhook_token(TOKEN)}")
        exchange.answered("POST /force_cleanup with the bearer token that Alertmanager has", answer, 401)
