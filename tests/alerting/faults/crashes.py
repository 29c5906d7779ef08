"""SIGKILL of the receiver at every step between accept and act."""

from __future__ import annotations

import time

import httpx

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import alert, wait_for

TRIES = 3
STEPS = {
    "receiving": "alerts written, not committed",
    "received": "committed, not answered",
    "deciding": "decision written, not committed",
    "decided": "decided, trainer not asked",
    "requesting": "about to ask",
    "answer-read": "trainer answered, answer not kept",
    "answered": "answer kept, effect not read",
    "checked": "effect read, not kept",
    "done": "all kept",
}


def killed_at(step: str) -> None:
    @fault(f"SIGKILL: {STEPS[step]}", TRIES)
    def test(stage: Stage, outcome: Outcome) -> None:
        trainer, receiver = stage.trainer(), stage.receiver()
        receiver.start({"HEAPWATCH_RECEIVER_TEST_FAILPOINT": step})
        try:
            accepted = receiver.post(alert(trainer.instance)).status_code == 200
        except httpx.TransportError:
            accepted = False
        assert receiver.program.process.wait(20) == -9
        with outcome.recovery():
            receiver.start()
            if not accepted:  # Alertmanager tries again
                assert receiver.post(alert(trainer.instance)).status_code == 200
            trainer.wait_until_done()
            receiver.decided(1)
        receiver.post(alert(trainer.instance))  # the other Alertmanager of a pair
        receiver.decided(2)
        outcome.count(trainer)


for name in STEPS:
    killed_at(name)


@fault("SIGKILL: while the trainer cleans up", TRIES)
def while_cleaning(stage: Stage, outcome: Outcome) -> None:
    trainer, receiver = stage.trainer("slow"), stage.receiver().start()
    receiver.post(alert(trainer.instance))
    wait_for(lambda: receiver.rows()[0]["action"]["state"] == "requesting", "the request")
    receiver.program.kill()
    with outcome.recovery():
        receiver.start()
        (row,) = receiver.decided(1)
    assert row["action"]["result"] == "helped", row
    outcome.count(trainer)


@fault("SIGKILL: in a row, at random moments")
def in_a_row(stage: Stage, outcome: Outcome) -> None:
    trainers = [stage.trainer("slow") for _ in range(6)]
    receiver = stage.receiver().start()
    for number, trainer in enumerate(trainers):
        receiver.post(alert(trainer.instance, number))
        receiver.program.kill()
        receiver.start()
    with outcome.recovery():
        rows = receiver.decided(len(trainers), 40)
    assert all(row["action"]["result"] == "helped" for row in rows), rows
    for trainer in trainers:
        outcome.count(trainer)


@fault("the restart command, SIGKILL while it runs", TRIES)
def restart_command(stage: Stage, outcome: Outcome) -> None:
    trainer = stage.trainer("useless")
    runs = stage.folder("restarts") / "runs"
    command = ["sh", "-c", f"echo $0 >> {runs}; sleep 1", "{instance}"]
    receiver = stage.receiver(
        escalation="restart", restart_command=command, regular_cooldown=0.1, emergency_cooldown=0.1
    ).start()
    for step in (1, 2):
        receiver.post(alert(trainer.instance))
        assert receiver.decided(step)[0]["action"]["result"] == "no_effect"
        time.sleep(0.2)  # the cooldown
    receiver.post(alert(trainer.instance))
    wait_for(runs.exists, "the command")
    receiver.program.kill()
    with outcome.recovery():
        receiver.start()
        row = receiver.decided(3)[0]
    assert (row["action"]["action"], row["action"]["result"]) == ("restart", "failed"), row
    receiver.post(alert(trainer.instance))
    assert receiver.decided(4)[0]["decision"] == "suppress"
    outcome.count(trainer, expected=2)
    outcome.doubled += len(runs.read_text().splitlines()) - 1
