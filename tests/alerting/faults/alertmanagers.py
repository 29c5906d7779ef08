"""The whole way, from a real Prometheus through real Alertmanagers, which restart, come in pairs, repeat."""

from __future__ import annotations

import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Fleet, Trainer, wait_for
from tests.support.ports import free_port

TRIES = 3
FLEET = 200
OUTAGE_SECONDS = 60  # 60 of its repeat intervals: a second each here, five minutes in the stack


@fault("Alertmanager killed after it sent, and restarted")
def killed(stage: Stage, outcome: Outcome) -> None:
    for _ in range(TRIES):
        receiver = stage.receiver()
        alertmanager = stage.alertmanager(receiver)
        prometheus = stage.own_prometheus(alertmanager)
        receiver.settings["prometheus_url"] = prometheus.url
        receiver.start()
        trainer = stage.trainer("useless", prometheus)
        wait_for(lambda trainer=trainer: trainer.done, "the cleanup")
        alertmanager.program.kill()  # with it goes what it knew to have sent
        before = len(receiver.settled(1))
        with outcome.recovery():
            alertmanager.start()
            rows = receiver.settled(before + 1, 60)
        # a scrape that a busy machine missed in between makes it another alert
        assert rows[0]["reason"] in ("duplicate", "cooldown"), rows[0]
        outcome.count(trainer)
        for owner in (receiver, alertmanager, prometheus):
            owner.program.stop()


@fault("receiver down while Alertmanager sends")
def receiver_down(stage: Stage, outcome: Outcome) -> None:
    for _ in range(TRIES):
        receiver = stage.receiver()
        alertmanager = stage.alertmanager(receiver)
        prometheus = stage.own_prometheus(alertmanager)
        receiver.settings["prometheus_url"] = prometheus.url
        trainer = stage.trainer(prometheus=prometheus)
        wait_for(
            lambda log=alertmanager.program.log: "connection refused" in log.read_text(),
            "a delivery that failed",
        )
        with outcome.recovery():
            receiver.start()
            wait_for(lambda trainer=trainer: trainer.done, "the cleanup", 60)
        receiver.settled(1)
        outcome.count(trainer)
        for owner in (receiver, alertmanager, prometheus):
            owner.program.stop()


@fault("Alertmanager down for 60 of its repeat intervals, 200 trainers leak")
def outage(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver()
    alertmanager = stage.alertmanager(receiver)
    prometheus = stage.own_prometheus(alertmanager, scrape="3s")
    receiver.settings["prometheus_url"] = prometheus.url
    receiver.start()
    alertmanager.program.kill()
    fleet = Fleet(stage.folder("fleet"), FLEET)
    try:
        prometheus.watch_fleet(fleet.instances)
        time.sleep(OUTAGE_SECONDS)
        assert not any(fleet.done)
        with outcome.recovery():
            alertmanager.start()
            wait_for(lambda: all(fleet.done), "every trainer is cleaned up", 300)
        receiver.settled(FLEET, 120)
        outcome.tried = FLEET
        outcome.doubled = sum(count - 1 for count in fleet.done)
    finally:
        fleet.stop()
    for owner in (receiver, alertmanager, prometheus):
        owner.program.stop()


def pair(name: str, clustered: bool) -> None:
    @fault(f"two Alertmanagers, {name}")
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver = stage.receiver()
        ports = (free_port(), free_port()) if clustered else (0, 0)
        first = stage.alertmanager(receiver, ports[0])
        second = stage.alertmanager(receiver, ports[1], (ports[0],) if clustered else ())
        prometheus = stage.own_prometheus(first, second)
        receiver.settings["prometheus_url"] = prometheus.url
        receiver.start()
        trainers = [stage.trainer(prometheus=prometheus) for _ in range(TRIES)]
        for trainer in trainers:
            wait_for(
                lambda trainer=trainer: receiver.rows(instance=trainer.instance, decision="close"),
                "its end",
                60,
            )
        receiver.settled(2 * TRIES)
        for trainer in trainers:
            outcome.count(trainer)
        outcome.note = f"{len(receiver.rows())} deliveries"
        for owner in (receiver, first, second, prometheus):
            owner.program.stop()


@fault("three Alertmanagers, clustered, one killed")
def one_of_three(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver()
    ports = [free_port() for _ in range(3)]
    cluster = [stage.alertmanager(receiver, port, tuple(ports[:number])) for number, port in enumerate(ports)]
    prometheus = stage.own_prometheus(*cluster)
    receiver.settings["prometheus_url"] = prometheus.url
    receiver.start()

    def closed(trainer: Trainer) -> None:
        wait_for(lambda: receiver.rows(instance=trainer.instance, decision="close"), "its end", 60)

    before = stage.trainer(prometheus=prometheus)
    wait_for(lambda: before.done, "the cleanup")
    cluster[0].program.kill()  # what it told the others is all that is left of what it sent
    with outcome.recovery():
        closed(before)
        without = stage.trainer(prometheus=prometheus)
        closed(without)
    cluster[0].start()  # its peers tell it what was sent meanwhile
    after = stage.trainer(prometheus=prometheus)
    closed(after)
    receiver.settled(6)
    for trainer in (before, without, after):
        outcome.count(trainer)
    outcome.note = f"{len(receiver.rows())} deliveries"
    for owner in (receiver, *cluster, prometheus):
        owner.program.stop()


pair("clustered", clustered=True)
pair("knowing nothing of each other", clustered=False)
