"""A full disk, a corrupt file, a folder that cannot be written, two receivers on one database."""

from __future__ import annotations

import os
import resource
import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Receiver, alert, wait_for

TRIES = 3
RECOVERIES = "heapwatch_receiver_database_recoveries_total"


def _fill_disk(receiver: Receiver) -> None:
    """No file of the receiver can grow beyond 4 kB any more: its database cannot be written."""
    resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def _make_room(receiver: Receiver) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, unlimited)


@fault("disk full when the alert comes")
def full_at_first(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    for number in range(TRIES):
        trainer = stage.trainer()
        _fill_disk(receiver)
        answer = receiver.post(alert(trainer.instance, number))
        assert answer.status_code == 503, answer
        assert answer.headers["Retry-After"], answer
        _make_room(receiver)
        with outcome.recovery():
            assert receiver.post(alert(trainer.instance, number)).status_code == 200
            receiver.settled(number + 1)
        outcome.count(trainer)
    receiver.program.stop()


@fault("disk full while the trainer cleans up")
def full_in_between(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    for number in range(TRIES):
        trainer = stage.trainer("slow")
        receiver.post(alert(trainer.instance, number))
        wait_for(lambda: receiver.rows()[0]["action"]["state"] == "requesting", "the request")
        _fill_disk(receiver)
        wait_for(lambda trainer=trainer: trainer.done, "the cleanup")
        wait_for(lambda: "saving the regular" in receiver.log.read_text(), "a failed write")
        _make_room(receiver)
        with outcome.recovery():
            row = receiver.settled(number + 1)[0]
        assert row["action"]["result"] == "helped", row
        outcome.count(trainer)
    receiver.program.stop()


def _corrupt(receiver: Receiver) -> None:
    for path in receiver.folder.glob(receiver.database.name + "*"):
        if not path.name.endswith(("-shm", ".lock")) and ".corrupt-" not in path.name:
            with path.open("r+b") as file:
                file.write(b"\xde\xad\xbe\xef" * (path.stat().st_size // 4))


@fault("database corrupt at the start")
def corrupt_at_start(stage: Stage, outcome: Outcome) -> None:
    for _ in range(TRIES):
        receiver = stage.receiver(regular_cooldown=2, emergency_cooldown=2).start()
        first, second = stage.trainer("useless"), stage.trainer()
        receiver.post(alert(first.instance, 1))
        receiver.settled(1)
        receiver.program.kill()
        _corrupt(receiver)
        with outcome.recovery():
            receiver.start()
            assert receiver.metric(RECOVERIES) == 1
            receiver.post(alert(first.instance, 1))
            assert receiver.settled(1)[0]["reason"] == "recovering"
            _repeat_until_done(receiver, second)
        assert list(receiver.folder.glob("*.corrupt-*")), "the old file is kept"
        outcome.count(first)
        outcome.count(second)
        receiver.program.stop()


@fault("database corrupted while it runs")
def corrupt_while_running(stage: Stage, outcome: Outcome) -> None:
    for _ in range(TRIES):
        receiver = stage.receiver(regular_cooldown=2, emergency_cooldown=2).start()
        first, second = stage.trainer("useless"), stage.trainer()
        receiver.post(alert(first.instance, 1))
        receiver.settled(1)
        _corrupt(receiver)
        with outcome.recovery():
            wait_for(
                lambda receiver=receiver, first=first: _recovered(receiver, first.instance),
                "a fresh database",
            )
            _repeat_until_done(receiver, second)
        outcome.count(first)
        outcome.count(second)
        receiver.program.stop()


@fault("the write-ahead log of the database corrupted, SIGKILL before")
def corrupt_log(stage: Stage, outcome: Outcome) -> None:
    for _ in range(TRIES):
        receiver = stage.receiver(regular_cooldown=2, emergency_cooldown=2).start()
        first, second = stage.trainer("useless"), stage.trainer()
        receiver.post(alert(first.instance, 1))
        receiver.settled(1)
        receiver.program.kill()
        log = receiver.database.with_name(receiver.database.name + "-wal")
        assert log.stat().st_size > 4096
        with log.open("r+b") as file:
            file.seek(log.stat().st_size // 2)
            file.write(os.urandom(2048))
        with outcome.recovery():
            receiver.start()
            _repeat_until_done(receiver, second)
        outcome.count(first)
        outcome.count(second)
        receiver.program.stop()


@fault("database moved away, and replaced, while it runs")
def moved(stage: Stage, outcome: Outcome) -> None:
    for replaced in (False, True):
        receiver = stage.receiver(regular_cooldown=2, emergency_cooldown=2).start()
        first, second = stage.trainer("useless"), stage.trainer()
        receiver.post(alert(first.instance, 1))
        receiver.settled(1)
        copy = receiver.folder / "copy"
        copy.write_bytes(receiver.database.read_bytes())
        if replaced:  # in one step, as the receiver looks by itself too
            copy.replace(receiver.database)
        else:
            receiver.database.rename(receiver.folder / "elsewhere")
        answer = receiver.post(alert(second.instance, 2))
        noticed = answer.status_code == 200 and receiver.metric(RECOVERIES) == 1
        assert answer.status_code == 503 or noticed, answer
        with outcome.recovery():
            _repeat_until_done(receiver, second)
        known = len(receiver.rows())
        receiver.program.kill()
        receiver.start()
        assert len(receiver.rows()) >= known, "what was answered with 200 is there after a restart"
        outcome.count(first)
        outcome.count(second)
        receiver.program.stop()


def _recovered(receiver: Receiver, instance: str) -> bool:
    receiver.post(alert(instance, 1))
    return receiver.metric(RECOVERIES) == 1


def _repeat_until_done(receiver: Receiver, trainer) -> None:
    """As Alertmanager repeats while an alert fires."""

    def repeat() -> bool:
        receiver.post(alert(trainer.instance, 2))
        time.sleep(0.2)
        return bool(trainer.done)

    wait_for(repeat, "a cleanup after the recovery")


@fault("database in a folder that cannot be written")
def unwritable(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver(database="/proc/heapwatch/receiver.sqlite3").start(wait=False)
    assert receiver.program.process.wait(20) == 2
    assert "must be writable" in receiver.log.read_text()
    outcome.tried += 1


@fault("a second receiver on the same database")
def second(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    other = stage.receiver(database=str(receiver.database)).start(wait=False)
    assert other.program.process.wait(20) == 2
    assert "another receiver" in other.log.read_text()
    trainer = stage.trainer()
    receiver.post(alert(trainer.instance))
    receiver.settled(1)
    outcome.count(trainer)
    receiver.program.stop()
