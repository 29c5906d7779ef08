"""Somebody takes the port of a trainer that was killed, and waits for what the stack sends there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import httpx

from tests.alerting.faults.stage import Stage
from tests.alerting.harness import TOKEN, alert, wait_for
from tests.attacks.programs import heapwatch, impostor, real_trainer
from tests.attacks.record import Exchange, NotHere, attack

STRANGER, VICTIM = 61234, 61235


def _without_secret(server, exchange: Exchange) -> tuple[str, dict[str, str], bytes]:
    path, headers, body = server.caught[-1]
    exchange.back(f"to the impostor: POST {path}, Authorization: {headers['Authorization']}")
    for _, seen, content in server.caught:
        assert TOKEN not in str(seen)
        assert TOKEN.encode() not in content
    return path, headers, body


def _refused(stage: Stage, exchange: Exchange, caught: tuple[str, dict[str, str], bytes], port: int) -> None:
    """What the impostor got is of no use with any trainer that knows the same token."""
    path, headers, body = caught
    with real_trainer(stage.folder("trainer")) as other:
        answer = httpx.post(other.url + path, content=body, headers=headers, timeout=15)
        exchange.sent("the same request, passed on to another trainer of the stack")
        exchange.back(f"{answer.status_code} {answer.text}")
        assert answer.status_code == 421
    time.sleep(1.1)
    with real_trainer(stage.folder("trainer"), port=port) as again:
        assert again.port == port
        answer = httpx.post(again.url + path, content=body, headers=headers, timeout=15)
        exchange.sent("the same request, to the trainer that was started again on its port")
        exchange.back(f"{answer.status_code} {answer.text}")
        assert answer.status_code == 401


@attack("a dead trainer's port, taken by another process, and the receiver acts", quick=False)
def receiver(stage: Stage, exchange: Exchange) -> None:
    trainer = stage.trainer()
    trainer.program.kill()
    running = stage.receiver().start()
    with impostor(trainer.port) as server:
        wait_for(lambda: stage.prometheus.fires(trainer), "the impostor is over its limit")
        exchange.sent("9 GB of memory, from the dead trainer's port")
        running.post(alert(trainer.instance))
        wait_for(lambda: server.caught, "the receiver asks it to clean up", 30)
        caught = _without_secret(server, exchange)
    running.program.stop()
    _refused(stage, exchange, caught, trainer.port)


@attack("a dead trainer's port, taken by another process, and monitor --auto-cleanup acts", quick=False)
def monitor(stage: Stage, exchange: Exchange) -> None:
    with impostor() as server:
        port = server.server_port
        with heapwatch(
            stage.folder("monitor"), "monitor", "--auto-cleanup", "--interval", 0.2, f"127.0.0.1:{port}"
        ):
            exchange.sent("9 GB of memory, from the dead trainer's port")
            wait_for(lambda: server.caught, "the monitor asks it to clean up", 30)
        caught = _without_secret(server, exchange)
    _refused(stage, exchange, caught, port)


LISTEN = """
import encodings.ascii, encodings.idna, encodings.latin_1, http.server, os, sys
from tests.attacks.programs import Impostor
os.setuid(int(sys.argv[1]))
class Kept(Impostor):
    def do_POST(self):
        print("asked", flush=True)
        super().do_POST()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kept)
server.caught, server.answer = [], None
print(server.server_port, flush=True)
server.serve_forever()
"""


@attack("a dead trainer's port, taken by another user of the machine", quick=False)
def other_user(stage: Stage, exchange: Exchange) -> None:
    if os.geteuid() != 0:
        raise NotHere("only root can start processes of two other users")
    folder = stage.folder("monitor")
    os.chown(folder, VICTIM, VICTIM)
    folder.parent.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(STRANGER)], stdout=subprocess.PIPE, text=True
    ) as stranger:
        try:
            assert stranger.stdout is not None
            port = int(stranger.stdout.readline())
            exchange.sent(f"9 GB of memory, by a process of user {STRANGER}, to the monitor of user {VICTIM}")
            command = ("monitor", "--auto-cleanup", "--interval", 0.2, "--count", 3, f"127.0.0.1:{port}")
            with heapwatch(folder, *command, user=VICTIM) as process:
                process.wait(60)
            output = (folder / "output").read_text()
            exchange.back(next((line for line in output.splitlines() if "listens" in line), output))
            assert f"user {STRANGER} listens" in output
        finally:
            stranger.kill()
        assert "asked" not in stranger.stdout.read()


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
            exchange.sent(what)
            exchange.back(f"{answer.status_code} {answer.text.strip()[:100]}")
            assert answer.status_code in expected, what


@attack("Alertmanager's token, stolen, tried on a trainer")
def stolen_webhook_token(stage: Stage, exchange: Exchange) -> None:
    from heapwatch.http.signing import webhook_token

    with real_trainer(stage.folder("trainer")) as trainer:
        answer = trainer.cleanup(Authorization=f"Bearer {webhook_token(TOKEN)}")
        exchange.sent("POST /force_cleanup with the bearer token that Alertmanager has")
        exchange.back(f"{answer.status_code} {answer.text.strip()}")
        assert answer.status_code == 401
