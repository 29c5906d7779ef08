"""A trainer that misbehaves: what it gives to be read, how it ends, and what it sends to terminals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from heapwatch import discovery
from tests.alerting.harness import wait_for
from tests.attacks.programs import own_places, printed, real_trainer
from tests.exporters.cli.wrong_answers import answering

pytestmark = pytest.mark.slow

ENDING = """
    import asyncio

    def end(*_):
        raise {error}

    watch.entities("food", end)
    watch.size("policy", end)
    watch.on_cleanup(end)
"""


@pytest.mark.parametrize("error", ["SystemExit(3)", "asyncio.CancelledError()", "GeneratorExit()"])
def test_what_a_source_or_a_cleanup_raises_ends_no_training(tmp_path, error):
    with real_trainer(tmp_path, ENDING.replace("{error}", error)) as trainer:
        answer = trainer.cleanup({"timeout_seconds": 10})
        assert answer.status_code == 200
        assert answer.json()["errors"]
        assert trainer.makes_progress()


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
                watch._exporter.safe_point.due = True
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


def test_the_target_of_a_killed_trainer_does_not_stay(tmp_path):
    targets = tmp_path / "targets"
    with real_trainer(tmp_path) as trainer:
        wait_for(lambda: list(targets.glob("*.json")), "its target")
        trainer.process.kill()
        trainer.process.wait()
        assert discovery.sweep(targets)
        assert not list(targets.glob("*.json"))


SPAWN = """
import json, multiprocessing
import heapwatch

watch = heapwatch.start("spawning", port=0, interval=0.1)

def work(results):
    watch.step()
    results.put(watch.port)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=work, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    ports = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    print(json.dumps({"ports": ports, "codes": [worker.exitcode for worker in workers]}))
"""


def test_spawned_workers_that_run_the_main_script_again_serve_nothing(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text(SPAWN)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=own_places(tmp_path), text=True, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"ports": [None, None], "codes": [0, 0]}
    assert not list((tmp_path / "targets").glob("*.json")), "every target is removed at the end"


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
    label = TEXT.replace("\n", "\\n")
    metrics = (
        f'trainer_process_resident_memory_bytes{{role="trainer"}} 1e6\ntrainer_info{{trainer="{label}"}} 1\n'
        f'trainer_entities{{type="{label}"}} 9\ntrainer_growing_path_bytes{{path="{label}"}} 9\n'
    )
    answers = {"/explain": json.dumps(explanation).encode(), "/metrics": metrics.encode()}
    with answering(answers) as server:
        for command in (
            ("explain", server.url),
            ("monitor", "--count", 1, server.url),
        ):
            output = printed(tmp_path, *command)
            assert all(line.isprintable() for line in output.split("\n")), command
