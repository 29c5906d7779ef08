"""The whole way, from a real Prometheus through real Alertmanagers, which restart, come in pairs, repeat."""

from __future__ import annotations

import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Alertmanager, Fleet, Prometheus, Receiver, Trainer, wait_for
from tests.support.ports import free_ports

TRIES = 3
FLEET = 200
OUTAGE_SECONDS = 60  # 60 of its repeat intervals: a second each here, five minutes in the stack


@fault("Alertmanager killed after it sent, and restarted", TRIES)
def killed(stage: Stage, outcome: Outcome) -> None:
    receiver, alertmanager, prometheus = stage.whole_path()
    receiver.start()
    trainer = stage.trainer("useless", prometheus)
    trainer.wait_until_done()
    alertmanager.program.kill()  # with it goes what it knew to have sent
    before = len(receiver.decided(1))
    with outcome.recovery():
        alertmanager.start()
        rows = receiver.decided(before + 1, 60)
    # a scrape that a busy machine missed in between makes it another alert
    assert rows[0]["reason"] in ("duplicate", "cooldown"), rows[0]
    outcome.count(trainer)


@fault("receiver down while Alertmanager sends", TRIES)
def receiver_down(stage: Stage, outcome: Outcome) -> None:
    receiver, alertmanager, prometheus = stage.whole_path()
    trainer = stage.trainer(prometheus=prometheus)
    wait_for(lambda: "connection refused" in alertmanager.program.log.read_text(), "a delivery that failed")
    with outcome.recovery():
        receiver.start()
        trainer.wait_until_done()
    receiver.decided(1)
    outcome.count(trainer)


@fault("Alertmanager down for 60 of its repeat intervals, 200 trainers leak")
def outage(stage: Stage, outcome: Outcome) -> None:
    receiver, alertmanager, prometheus = stage.whole_path(scrape="3s")
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
        receiver.decided(FLEET, 120)
        outcome.tried = FLEET
        outcome.doubled = sum(count - 1 for count in fleet.done)
    finally:
        fleet.program.kill()


def _cluster(stage: Stage, ports: list[int]) -> tuple[Receiver, list[Alertmanager], Prometheus]:
    """A receiver, and so many Alertmanagers; with port 0 they know nothing of each other."""
    receiver = stage.receiver()
    cluster = [
        stage.alertmanager(receiver, port, tuple(ports[:number]) if port else ())
        for number, port in enumerate(ports)
    ]
    prometheus = stage.own_prometheus(*cluster)
    receiver.settings["prometheus_url"] = prometheus.url
    return receiver.start(), cluster, prometheus


def _closed(receiver: Receiver, trainer: Trainer) -> None:
    wait_for(lambda: receiver.rows(instance=trainer.instance, decision="close"), "its end", 60)


def pair(name: str, clustered: bool) -> None:
    @fault(f"two Alertmanagers, {name}")
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver, _, prometheus = _cluster(stage, free_ports(2) if clustered else [0, 0])
        trainers = [stage.trainer(prometheus=prometheus) for _ in range(TRIES)]
        for trainer in trainers:
            _closed(receiver, trainer)
        receiver.decided(2 * TRIES)
        for trainer in trainers:
            outcome.count(trainer)
        outcome.note = f"{len(receiver.rows())} deliveries"


@fault("three Alertmanagers, clustered, one killed")
def one_of_three(stage: Stage, outcome: Outcome) -> None:
    receiver, cluster, prometheus = _cluster(stage, free_ports(3))
    before = stage.trainer(prometheus=prometheus)
    before.wait_until_done()
    cluster[0].program.kill()  # what it told the others is all that is left of what it sent
    with outcome.recovery():
        _closed(receiver, before)
        without = stage.trainer(prometheus=prometheus)
        _closed(receiver, without)
    cluster[0].start()  # its peers tell it what was sent meanwhile
    after = stage.trainer(prometheus=prometheus)
    _closed(receiver, after)
    receiver.decided(6)
    for trainer in (before, without, after):
        outcome.count(trainer)
    outcome.note = f"{len(receiver.rows())} deliveries"


pair("clustered", clustered=True)
pair("knowing nothing of each other", clustered=False)
