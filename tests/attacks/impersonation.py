"""Somebody takes the port of a trainer that was killed, and waits for what the stack sends there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import httpx

from tests.alerting.harness import TOKEN, alert, wait_for
from tests.alerting.stage import Stage
from tests.attacks.programs import asked, heapwatch, printed, real_trainer, recording_trainer
from tests.attacks.record import Exchange, NotHere, attack
from tests.support.http_server import Request, Server

OTHER_USER, WATCHING_USER = 61234, 61235


def _without_secret(server: Server, exchange: Exchange) -> Request:
    last = asked(server)[-1]
    exchange.back(
        f"to the process in its place: POST {last.path}, Authorization: {last.headers['Authorization']}"
    )
    for request in asked(server):
        assert TOKEN not in str(request.headers)
        assert TOKEN.encode() not in request.body
    return last


def _refused(stage: Stage, exchange: Exchange, caught: Request, port: int) -> None:
    """What that process got is of no use with any trainer that knows the same token."""
    path, headers, body = caught.path, dict(caught.headers), caught.body
    with real_trainer(stage.folder("trainer")) as other:
        answer = httpx.post(other.url + path, content=body, headers=headers, timeout=15)
        exchange.answered("the same request, passed on to another trainer of the stack", answer, 421)
    time.sleep(1.1)
    with real_trainer(stage.folder("trainer"), port=port) as again:
        assert again.port == port
        answer = httpx.post(again.url + path, content=body, headers=headers, timeout=15)
        exchange.answered("the same request, to the trainer that was started again on its port", answer, 401)


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
    _refused(stage, exchange, caught, trainer.port)


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
    _refused(stage, exchange, caught, port)


LISTEN = """
import encodings.ascii, encodings.idna, encodings.latin_1, os, sys, time
from tests.attacks.programs import asked, recording_trainer
os.setuid(int(sys.argv[1]))
with recording_trainer() as server:
    print(server.port, flush=True)
    while not asked(server):
        time.sleep(0.05)
    print("asked", flush=True)
"""


@attack("a dead trainer's port, taken by another user of the machine", quick=False)
def other_user(stage: Stage, exchange: Exchange) -> None:
    if os.geteuid() != 0:
        raise NotHere("only root can start processes of two other users")
    folder = stage.folder("monitor")
    os.chown(folder, WATCHING_USER, WATCHING_USER)
    folder.parent.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(OTHER_USER)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            port = int(other.stdout.readline())
            exchange.sent(
                f"9 GB of memory, by a process of user {OTHER_USER}, to the monitor of user {WATCHING_USER}"
            )
            command = ("monitor", "--auto-cleanup", "--interval", 0.2, "--count", 3, f"127.0.0.1:{port}")
            _, output = printed(folder, *command, user=WATCHING_USER)
            exchange.back(next((line for line in output.splitlines() if "listens" in line), output))
            assert f"user {OTHER_USER} listens" in output
        finally:
            other.kill()
        assert "asked" not in other.stdout.read()


@attack("a signed request, replayed, changed or late")
def replay(stage: Stage, exchange: Exchange) -> None:
    from heapwatch.http import signing

    with real_trainer(stage.folder("trainer")) as trainer:
        url, body = f"{trainer.url}/force_cleanup", b'{"timeout_seconds": 0}'
        time.sleep(1.1)  # the second in which the trainer began is over
        header = signing.authorization(TOKEN, "POST", url, body)
        late = signing.authorization(TOKEN, "POST", url, body, clock=lambda: time.time() - 3600)
        forged = signing.authorization("guessed", "POST", url, body)
        for what, authorization, content, expected in (
            ("signed", header, body, (200, 202)),
            ("the same again", header, body, (401,)),
            ("the same with another body", header, b'{"action": "emergency"}', (401,)),
            ("signed an hour ago", late, body, (401,)),
            ("signed with a guessed token", forged, body, (401,)),
        ):
            headers = {"Authorization": authorization, "Content-Type": "application/json"}
            answer = httpx.post(url, content=content, headers=headers, timeout=15)
            exchange.answered(what, answer, *expected)


@attack("Alertmanager's token, stolen, tried on a trainer")
def stolen_webhook_token(stage: Stage, exchange: Exchange) -> None:
    from heapwatch.http.signing import webhook_token

    with real_trainer(stage.folder("trainer")) as trainer:
        answer = trainer.cleanup(Authorization=f"Bearer {webhook_token(TOKEN)}")
        exchange.answered("POST /force_cleanup with the bearer token that Alertmanager has", answer, 401)
