"""Clients that are slow, huge, malformed or without token get a 4xx or are cut off, and alerts still pass."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import HEADERS, TOKEN, alert
from tests.alerting.payloads import MALFORMED, notifications

LORIS = 400
HEAD = "POST /alerts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HEAD += f"Authorization: Bearer {TOKEN}\r\n"


def loris(name: str, begin: bytes) -> None:
    @fault(f"slow-loris, {LORIS} connections: {name}")
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver = stage.receiver().start()
        trainer = stage.trainer()
        connections = [socket.create_connection(("127.0.0.1", receiver.port)) for _ in range(LORIS)]
        for connection in connections:
            connection.sendall(begin)
        with outcome.recovery():
            receiver.post(alert(trainer.instance))
            receiver.decided(1)

        outcome.count(trainer)
        for connection in connections:
            connection.close()


loris("heads", HEAD.encode())
loris("bodies", f"{HEAD}Content-Length: 100000\r\n\r\n{{".encode())
loris("silent", b"")


@fault("a head without end")
def endless_head(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    with socket.create_connection(("127.0.0.1", receiver.port)) as connection:
        connection.sendall(HEAD.encode() + b"X-Long: ")
        sent = 0
        try:
            while sent < 64 << 20:
                sent += connection.send(b"x" * 65536)
        except OSError:
            pass
    assert sent < 16 << 20, f"{sent} bytes of a head were taken"
    assert receiver.get("/healthz").status_code == 200
    outcome.tried += 1


@fault("malformed, huge, deep, wrong-version, unauthorized")
def malformed(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver(max_body_bytes=1 << 20).start(), stage.trainer()
    for name, status, headers, body in MALFORMED:
        answer = httpx.post(
            f"{receiver.url}/alerts", content=body, headers={**HEADERS, **headers}, timeout=20
        )
        assert answer.status_code == status, (name, answer.status_code, answer.text[:300])
        assert answer.json()["error"], name
        outcome.tried += 1
    assert not receiver.rows()
    receiver.post(alert(trainer.instance))
    receiver.decided(1)
    outcome.count(trainer)


@fault("any JSON, and almost right payloads (hypothesis)")
def any_json(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    client = httpx.Client(headers={**HEADERS, "Content-Type": "application/json"}, timeout=20)
    anything = st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )

    @settings(
        max_examples=500,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(anything | notifications())
    def send(payload: object) -> None:
        outcome.tried += 1
        answer = client.post(f"{receiver.url}/alerts", content=json.dumps(payload))
        assert answer.status_code in (200, 400), answer.text

    send()
    outcome.note = f"{receiver.metric('heapwatch_receiver_alerts_received_total'):.0f} alerts accepted"


@fault("whatever the OpenAPI document allows (schemathesis)")
def openapi(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    program = shutil.which("schemathesis", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert program, "schemathesis is not installed: pip install -e .[test]"
    command = [program, "run", f"{receiver.url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}"]
    command += ["--max-examples", "50", "--exclude-checks", "unsupported_method,ignored_auth", "--no-color"]
    folder = stage.folder("schemathesis")
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert result.returncode == 0, result.stdout[-4000:]
    outcome.tried += 1
    outcome.note = next((line.strip() for line in result.stdout.splitlines() if "generated" in line), "")
    assert receiver.get("/healthz").status_code == 200
