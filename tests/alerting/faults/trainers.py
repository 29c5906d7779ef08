"""Trainers that are dead, hung, slow or broken, answer wrongly, or restart in the middle of a cleanup."""

from __future__ import annotations

import signal
import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Receiver, Trainer, alert, wait_for

TRIES = 3


def _asked_again(receiver: Receiver) -> None:
    wait_for(lambda: "asking again" in receiver.log.read_text(), "a failed try")


def recovers_from(name: str, mode: str) -> None:
    """The trainer misbehaves so for a while, then is well: the cleanup is done, once."""

    @fault(f"trainer {name}, then well", TRIES)
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver, trainer = stage.receiver().start(), stage.trainer(mode)
        receiver.post(alert(trainer.instance))
        _asked_again(receiver)
        trainer.set_mode("ok")
        with outcome.recovery():
            (row,) = receiver.decided(1)
        assert row["action"]["result"] == "helped", row
        outcome.count(trainer)


for label, fake_mode in {
    "answers 500": "error",
    "answers garbage": "garbage",
    "answers 8 MB": "huge",
    "reaches no safe point": "pending",
    "limits the rate": "limited",
}.items():
    recovers_from(label, fake_mode)


def gives_up_on(name: str, mode: str, result: str, reason: str) -> None:
    """The trainer stays so: an end is made of it, and said."""

    @fault(f"trainer {name}, for good", TRIES)
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver, trainer = stage.receiver(trainer_deadline=1).start(), stage.trainer(mode)
        receiver.post(alert(trainer.instance))
        (row,) = receiver.decided(1)
        assert row["action"]["result"] == result, row
        assert reason in row["action"]["detail"], row
        outcome.count(trainer, expected=0)


gives_up_on("answers 500", "error", "failed", "500")
gives_up_on("reaches no safe point", "pending", "pending", "safe point")
gives_up_on("redirects", "redirect", "failed", "302")
gives_up_on("refuses (403)", "forbidden", "refused", "no token configured")


@fault("trainer hung (stopped), then goes on", TRIES)
def hung(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver(trainer_timeout=0.5, trainer_deadline=60).start(), stage.trainer()
    trainer.program.process.send_signal(signal.SIGSTOP)
    receiver.post(alert(trainer.instance))
    _asked_again(receiver)
    trainer.program.process.send_signal(signal.SIGCONT)
    with outcome.recovery():
        (row,) = receiver.decided(1, 60)
    assert row["action"]["result"] == "helped", row
    outcome.count(trainer)


@fault("trainer slow", TRIES)
def slow(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer("slow")
    receiver.post(alert(trainer.instance))
    (row,) = receiver.decided(1)
    assert row["action"]["result"] == "helped", row
    assert row["action"]["requests"] == 1, row
    outcome.count(trainer)


@fault("trainer cleans up after every deadline, the alert repeats")
def late(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver(trainer_timeout=0.5, trainer_deadline=2).start()
    trainers = [stage.trainer("late") for _ in range(TRIES)]
    for _ in range(2):
        receiver.post(*(alert(trainer.instance, number) for number, trainer in enumerate(trainers)))
        rows = receiver.decided(TRIES)
    results = {row["action"]["result"] for row in rows if row["action"]}
    assert results <= {"failed", "pending"}, rows
    wait_for(lambda: all(trainer.done for trainer in trainers), "they clean up nevertheless", 30)
    time.sleep(2)
    for trainer in trainers:
        outcome.count(trainer)
    outcome.note = f"the receiver says {', '.join(sorted(results))}"


@fault("a hung trainer beside a well one")
def beside(stage: Stage, outcome: Outcome) -> None:
    stuck = stage.trainer("hang")
    receiver = stage.receiver(trainer_timeout=30, trainer_deadline=60).start()
    receiver.post(alert(stuck.instance, 1000))
    for number in range(TRIES):
        trainer = stage.trainer()
        with outcome.recovery():
            receiver.post(alert(trainer.instance, number))
            trainer.wait_until_done("the well one is not kept waiting", 20)
        outcome.count(trainer)
    receiver.program.kill()


@fault("trainer dead", TRIES)
def dead(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver(trainer_deadline=1).start(), stage.trainer()
    trainer.program.kill()
    receiver.post(alert(trainer.instance))
    (row,) = receiver.decided(1)
    # Either it is found dead, or Prometheus has seen its alert end first.
    assert (row["action"] or {}).get("result") == "failed" or row["reason"] == "not_firing", row
    outcome.count(trainer, expected=0)


def restarts(name: str, mode: str, done: int) -> None:
    """The trainer dies in the middle and comes back as a new process, which is not asked for the old one."""

    @fault(f"trainer restarts {name}", TRIES)
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver, trainer = stage.receiver(trainer_deadline=30).start(), stage.trainer(mode)
        receiver.post(alert(trainer.instance))
        trainer.program.process.wait(10)
        trainer.set_mode("ok")
        time.sleep(1.1)  # a process that starts within a second of the old one is not told from it
        with outcome.recovery():
            trainer.start()
            (row,) = receiver.decided(1)
        assert row["action"]["result"] == "failed", row
        assert "restarted" in row["action"]["detail"], row
        outcome.count(trainer, expected=done)


restarts("before it cleaned up", "die-before", 0)
restarts("after it cleaned up", "die-after", 1)


@fault("cleanup without effect: each step once, then an end", TRIES)
def without_effect(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver(regular_cooldown=0.2, emergency_cooldown=0.2).start()
    trainer: Trainer = stage.trainer("useless")
    sent = 0
    while not any(row["reason"] == "exhausted" for row in receiver.rows()):
        receiver.post(alert(trainer.instance))
        sent += 1
        receiver.decided(sent)
    assert [one["action"] for one in trainer.done] == ["regular", "emergency"], trainer.done
    outcome.count(trainer, expected=2)
