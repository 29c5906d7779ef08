"""Prometheus down when an alert comes, and while the effect is read."""

from __future__ import annotations

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Prometheus, Receiver, Trainer, alert, wait_for

TRIES = 3


def _all(stage: Stage, **settings: object) -> tuple[Prometheus, Receiver, Trainer]:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url, **settings).start()
    return prometheus, receiver, stage.trainer(prometheus=prometheus)


def _killed_once_answered(prometheus: Prometheus, receiver: Receiver, trainer: Trainer) -> None:
    receiver.post(alert(trainer.instance))
    wait_for(lambda: receiver.rows()[0]["action"]["state"] == "answered", "the answer")
    prometheus.program.kill()


@fault("Prometheus down while the effect is read, for good", TRIES)
def stays_down(stage: Stage, outcome: Outcome) -> None:
    prometheus, receiver, trainer = _all(stage, check_after=0.5, check_deadline=1)
    _killed_once_answered(prometheus, receiver, trainer)
    (row,) = receiver.decided(1)
    assert row["action"]["result"] == "helped", row  # by the trainer's own figures
    assert "prometheus" not in row["action"]["after"], row
    outcome.count(trainer)


@fault("Prometheus down while the effect is read, then back", TRIES)
def comes_back(stage: Stage, outcome: Outcome) -> None:
    prometheus, receiver, trainer = _all(stage, check_after=0.5, check_deadline=30)
    _killed_once_answered(prometheus, receiver, trainer)
    wait_for(lambda: "no figures after" in receiver.log.read_text(), "a failed reading")
    with outcome.recovery():
        prometheus.start()
        (row,) = receiver.decided(1, 40)
    assert row["action"]["result"] == "helped", row
    assert "prometheus" in row["action"]["after"], row
    outcome.count(trainer)


@fault("Prometheus down when the alert comes, then back", TRIES)
def down_at_first(stage: Stage, outcome: Outcome) -> None:
    prometheus, receiver, trainer = _all(stage)
    prometheus.program.kill()
    receiver.post(alert(trainer.instance))
    wait_for(lambda: "Prometheus, about" in receiver.log.read_text(), "a failed question")
    with outcome.recovery():
        prometheus.start()
        (row,) = receiver.decided(1, 60)
    assert row["decision"] == "act", row
    outcome.count(trainer)


@fault("Prometheus down until the alert is stale", TRIES)
def stale(stage: Stage, outcome: Outcome) -> None:
    prometheus, receiver, trainer = _all(stage, stale_after=1)
    prometheus.program.kill()
    receiver.post(alert(trainer.instance))
    (row,) = receiver.decided(1)
    assert row["reason"] == "stale", row
    outcome.count(trainer, expected=0)
