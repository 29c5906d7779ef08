"""Faults between an alert and its cleanup: none is lost, and none is done twice."""

from __future__ import annotations

import resource
import time

import pytest

from tests.alerting.harness import alert, wait_for

pytestmark = pytest.mark.slow

FULL = (4096, resource.RLIM_INFINITY)  # no file can grow beyond 4 kB any more
FREE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_a_receiver_that_is_killed_after_it_accepted_does_everything_once(scene):
    trainers = [scene.trainer("slow") for _ in range(2)]
    receiver = scene.receiver().start()
    for number, trainer in enumerate(trainers):
        assert receiver.post(alert(trainer.instance, number)).status_code == 200
        receiver.program.kill()
        receiver.start()

    rows = receiver.decided(len(trainers))

    assert [row["action"]["result"] for row in rows] == ["helped"] * len(trainers)
    assert [len(trainer.done) for trainer in trainers] == [1] * len(trainers)


def test_a_receiver_that_was_down_gets_the_alert_and_a_new_alertmanager_repeats_nothing(scene):
    receiver, alertmanager, prometheus = scene.whole_path()
    trainer = scene.trainer("useless", prometheus)
    wait_for(lambda: "connection refused" in alertmanager.program.log.read_text(), "a delivery that failed")
    receiver.start()
    trainer.wait_until_done()
    alertmanager.program.kill()  # with it goes what it knew to have sent
    before = len(receiver.decided(1))
    alertmanager.start()

    rows = receiver.decided(before + 1)

    # a scrape that a busy machine missed in between makes it another alert
    assert rows[0]["reason"] in ("duplicate", "cooldown")
    assert len(trainer.done) == 1


def test_an_alert_waits_for_a_prometheus_that_is_down(scene):
    prometheus = scene.own_prometheus()
    receiver = scene.receiver(prometheus_url=prometheus.url).start()
    trainer = scene.trainer(prometheus=prometheus)
    prometheus.program.kill()
    receiver.post(alert(trainer.instance))
    wait_for(lambda: "Prometheus, about" in receiver.log.read_text(), "a failed question")
    assert not trainer.done
    prometheus.start()

    (row,) = receiver.decided(1)

    assert row["decision"] == "act"
    assert len(trainer.done) == 1


@pytest.mark.parametrize("mode", ["error", "garbage", "pending"])
def test_a_trainer_that_misbehaves_for_a_while_is_asked_again(scene, mode):
    receiver, trainer = scene.receiver().start(), scene.trainer(mode)
    receiver.post(alert(trainer.instance))
    wait_for(lambda: "asking again" in receiver.log.read_text(), "a failed try")
    trainer.set_mode("ok")

    (row,) = receiver.decided(1)

    assert row["action"]["result"] == "helped"
    assert len(trainer.done) == 1


def test_a_trainer_that_leads_elsewhere_is_not_followed(scene):
    receiver, trainer = scene.receiver().start(), scene.trainer("redirect")
    receiver.post(alert(trainer.instance))

    (row,) = receiver.decided(1)

    assert row["action"]["result"] == "failed"
    assert "302" in row["action"]["detail"]


def test_a_hung_trainer_does_not_keep_another_waiting(scene):
    stuck, receiver = scene.trainer("hang"), scene.receiver().start()
    receiver.post(alert(stuck.instance, 1000))
    well = scene.trainer()
    receiver.post(alert(well.instance))
    well.wait_until_done("the well one is not kept waiting", 20)
    assert len(well.done) == 1


def test_a_trainer_that_restarts_is_not_asked_for_the_process_before(scene):
    receiver, trainer = scene.receiver().start(), scene.trainer("die-before")
    receiver.post(alert(trainer.instance))
    trainer.program.process.wait(10)
    trainer.set_mode("ok")
    time.sleep(1.1)  # a process that starts within a second of the old one is not told from it
    trainer.start()

    (row,) = receiver.decided(1)

    assert row["action"]["result"] == "failed"
    assert "restarted" in row["action"]["detail"]
    assert trainer.done == []


def test_what_cannot_be_written_is_not_acknowledged(scene):
    receiver, trainer = scene.receiver().start(), scene.trainer()
    resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, FULL)
    assert receiver.post(alert(trainer.instance)).status_code == 503
    resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, FREE)
    assert receiver.post(alert(trainer.instance)).status_code == 200
    receiver.decided(1)
    assert len(trainer.done) == 1


def test_thousands_of_alerts_about_trainers_that_nobody_scrapes_do_not_hold_up_a_genuine_one(scene):
    receiver, trainer = scene.receiver().start(), scene.trainer()
    for start in range(0, 4000, 2000):
        invented = [alert(f"10.0.0.1:{number}", number) for number in range(start, start + 2000)]
        assert receiver.post(*invented).status_code == 200
    receiver.post(alert(trainer.instance, 99_999))
    trainer.wait_until_done("the genuine cleanup", 30)
