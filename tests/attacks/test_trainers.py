"""A trainer that misbehaves: what it gives to be read, how it ends, and what it sends to terminals."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.attacked_trainers import printed, real_trainer
from tests.support.wrong_answers import answering

pytestmark = pytest.mark.slow

HANGING = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    watch.entities("food", lambda: time.sleep(3600))
"""


def test_a_trainer_whose_source_hangs_is_ended_by_its_own_handler(tmp_path):
    with real_trainer(tmp_path, HANGING) as trainer:
        time.sleep(1.0)
        trainer.process.send_signal(signal.SIGTERM)
        assert trainer.process.wait(60) == 143


WORLDS = """
    import Box2D

    worlds = [Box2D.b2World(), Box2D.b2World()]
    watch.bodies(lambda: worlds)

    @watch.on_cleanup
    def clean(action):
        return {"locked": sum(world.locked for world in worlds)}

    class Listener(Box2D.b2ContactListener):
        def BeginContact(self, contact):
            for _ in range(50):
                watch.exporter.safe_point.due = True
                watch.step()

    worlds[1].contactListener = Listener()
    print(watch.port, flush=True)
    while True:
        bodies = [worlds[1].CreateDynamicBody(position=(0, 0)) for _ in range(2)]
        for body in bodies:
            body.CreateFixture(shape=Box2D.b2PolygonShape(box=(1, 1)))
        worlds[1].Step(1 / 60, 8, 3)
        for body in bodies:
            worlds[1].DestroyBody(body)
        watch.step()
"""


def test_a_cleanup_waits_until_no_world_is_inside_its_step(tmp_path):
    with real_trainer(tmp_path, WORLDS) as trainer:
        for number in range(5):
            answer = trainer.cleanup({"timeout_seconds": 10, "request_id": str(number)})
            assert answer.json()["removed"] == {"locked": 0}


TEXT = "\x1b]0;owned\x07\x9b2J\x7f\n\u202e\u2066\u200b[bold][link=http://evil.example]x[/link]"


def test_nothing_that_a_trainer_sends_controls_a_terminal(tmp_path):
    finding = {
        "kind": "container", "path": TEXT, "type": TEXT, "items": 1, "bytes": 1, "items_per_minute": 1,
        "bytes_per_minute": 1, "share": 1, "site": {"file": TEXT, "line": 1, "function": TEXT},
        "holders": [TEXT], "remedy": TEXT, "is_leak": True,
    }  # fmt: skip
    explanation = {
        "verdict": "leak", "detail": TEXT, "seconds": 1, "growth_bytes_per_minute": 1, "explained_share": 1,
        "findings": [finding, finding],
    }  # fmt: skip
    status = {
        "training": "unknown",
        "performance": {"memory_mb": 1.0},
        "entities": {TEXT: 9},
        "body_types": {TEXT: 9},
        "leaks": {"verdict": "leak", "message": TEXT},
        "alerts": [],
    }
    answers = {
        "/explain": json.dumps(explanation).encode(),
        "/performance_status": json.dumps(status).encode(),
    }
    with answering(answers) as server:
        for command in (("explain", server.url), ("monitor", "--count", 1, server.url)):
            output = printed(tmp_path, *command)
            assert all(line.isprintable() for line in output.split("\n")), command
