"""Prometheus down when an alert comes, and while the effect is read."""

from __future__ import annotations

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Receiver, alert, wait_for

TRIES = 3


def _answered(receiver: Receiver) -> bool:
    return bool(receiver.rows()[0]["action"]["state"] == "answered")


@fault("Prometheus down while the effect is read, for good")
def stays_down(stage: Stage, outcome: Outcome) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url, check_after=0.5, check_deadline=1).start()
    for number in range(TRIES):
        trainer = stage.trainer(prometheus=prometheus)
        receiver.post(alert(trainer.instance, number))
        wait_for(lambda: _answered(receiver), "the answer")
        prometheus.program.kill()
        row = receiver.settled(number + 1)[0]
        assert row["action"]["result"] == "helped", row  # by the trainer's own figures
        assert "prometheus" not in row["action"]["after"], row
        prometheus.start()
        outcome.count(trainer)
    receiver.program.stop()


@fault("Prometheus down while the effect is read, then back")
def comes_back(stage: Stage, outcome: Outcome) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url, check_after=0.5, check_deadline=30).start()
    for number in range(TRIES):
        trainer = stage.trainer(prometheus=prometheus)
        receiver.post(alert(trainer.instance, number))
        wait_for(lambda: _answered(receiver), "the answer")
        prometheus.program.kill()
        wait_for(lambda: "no figures after" in receiver.log.read_text(), "a failed reading")
        with outcome.recovery():
            prometheus.start()
            row = receiver.settled(number + 1, 40)[0]
        assert row["action"]["result"] == "helped", row
        assert "prometheus" in row["action"]["after"], row
        outcome.count(trainer)
    receiver.program.stop()


@fault("Prometheus down when the alert comes, then back")
def down_at_first(stage: Stage, outcome: Outcome) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url).start()
    for number in range(TRIES):
        trainer = stage.trainer(prometheus=prometheus)
        prometheus.program.kill()
        receiver.post(alert(trainer.instance, number))
        wait_for(lambda: "Prometheus, about" in receiver.log.read_text(), "a failed question")
        with outcome.recovery():
            prometheus.start()
            row = receiver.settled(number + 1, 60)[0]
        assert row["decision"] == "act", row
        outcome.count(trainer)
    receiver.program.stop()


@fault("Prometheus down until the alert is stale")
def stale(stage: Stage, outcome: Outcome) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url, stale_after=1).start()
    trainer = stage.trainer(prometheus=prometheus)
    prometheus.program.kill()
    for number in range(TRIES):
        receiver.post(alert(trainer.instance, number))
        row = receiver.settled(number + 1)[0]
        assert row["reason"] == "stale", row
        outcome.count(trainer, expected=0)
    receiver.program.stop()
