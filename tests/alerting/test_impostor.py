"""A process that takes the port of a trainer that has ended, and passes on what the receiver sends it."""

from __future__ import annotations

import json

import pytest

from tests.support.alerting.harness import TOKEN, alert
from tests.support.http_client import CLIENT
from tests.support.http_server import Request, serving
from tests.support.served_trainer import Trainer
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

OVER_LIMIT = b"""trainer_process_resident_memory_bytes{role="trainer"} 9e9
trainer_limit{resource="memory",component="trainer",severity="critical"} 1e9
"""


def as_a_trainer(request: Request) -> tuple[int, bytes]:
    """The answer of a trainer over its limit that cleans up."""
    if request.method == "GET":
        return 200, OVER_LIMIT
    request_id = json.loads(request.body).get("request_id", "")
    return 200, json.dumps({"status": "done", "request_id": request_id}).encode()


def test_who_takes_a_dead_trainers_port_learns_no_secret_and_can_pass_nothing_on(scene):
    trainer = scene.trainer()
    trainer.stop()
    receiver = scene.receiver().start()
    with serving(as_a_trainer, port=trainer.port) as server:
        wait_for(lambda: scene.prometheus.fires(trainer), "the process in its place is over its limit")
        receiver.post(alert(trainer.instance))
        posted = wait_for(
            lambda: [one for one in server.requests if one.method == "POST"],
            "the receiver asks it to clean up",
        )
    for request in posted:
        assert TOKEN not in str(request.headers)
        assert TOKEN.encode() not in request.body
    caught, other = posted[0], Trainer(TOKEN)
    try:
        url = f"http://127.0.0.1:{other.server.port}{caught.path}"
        answer = CLIENT.post(url, content=caught.body, headers=dict(caught.headers), timeout=30)
        assert answer.status_code == 421
        assert other.queue.pending() == 0
    finally:
        other.server.stop()
