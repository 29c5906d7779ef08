"""A full disk, a corrupt file, a folder that cannot be written, two receivers on one database."""

from __future__ import annotations

import os
import resource
import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Receiver, Trainer, alert, wait_for

TRIES = 3
RECOVERIES = "heapwatch_receiver_database_recoveries_total"
FULL = (4096, resource.RLIM_INFINITY)  # no file can grow beyond 4 kB any more
FREE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def _limit_files(receiver: Receiver, limits: tuple[int, int]) -> None:
    resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, limits)


@fault("disk full when the alert comes", TRIES)
def full_at_first(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer()
    _limit_files(receiver, FULL)
    answer = receiver.post(alert(trainer.instance))
    assert answer.status_code == 503, answer
    assert answer.headers["Retry-After"], answer
    _limit_files(receiver, FREE)
    with outcome.recovery():
        assert receiver.post(alert(trainer.instance)).status_code == 200
        receiver.decided(1)
    outcome.count(trainer)


@fault("disk full while the trainer cleans up", TRIES)
def full_in_between(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer("slow")
    receiver.post(alert(trainer.instance))
    wait_for(lambda: receiver.rows()[0]["action"]["state"] == "requesting", "the request")
    _limit_files(receiver, FULL)
    trainer.wait_until_done()
    wait_for(lambda: "saving the regular" in receiver.log.read_text(), "a failed write")
    _limit_files(receiver, FREE)
    with outcome.recovery():
        (row,) = receiver.decided(1)
    assert row["action"]["result"] == "helped", row
    outcome.count(trainer)


def _one_acted_on(stage: Stage) -> tuple[Receiver, Trainer, Trainer]:
    """A receiver that has acted on the first of two trainers, which are over their limits."""
    receiver = stage.receiver(regular_cooldown=2, emergency_cooldown=2).start()
    first, second = stage.trainer("useless"), stage.trainer()
    receiver.post(alert(first.instance, 1))
    receiver.decided(1)
    return receiver, first, second


def _repeat_until_done(receiver: Receiver, trainer: Trainer) -> None:
    """As Alertmanager repeats while an alert fires."""

    def repeat() -> bool:
        receiver.post(alert(trainer.instance, 2))
        time.sleep(0.2)
        return bool(trainer.done)

    wait_for(repeat, "a cleanup after the recovery")


def _corrupt(receiver: Receiver) -> None:
    for path in receiver.folder.glob(receiver.database.name + "*"):
        if not path.name.endswith(("-shm", ".lock")) and ".corrupt-" not in path.name:
            with path.open("r+b") as file:
                file.write(b"\xde\xad\xbe\xef" * (path.stat().st_size // 4))


@fault("database corrupt at the start", TRIES)
def corrupt_at_start(stage: Stage, outcome: Outcome) -> None:
    receiver, first, second = _one_acted_on(stage)
    receiver.program.kill()
    _corrupt(receiver)
    with outcome.recovery():
        receiver.start()
        assert receiver.metric(RECOVERIES) == 1
        receiver.post(alert(first.instance, 1))
        assert receiver.decided(1)[0]["reason"] == "recovering"
        _repeat_until_done(receiver, second)
    assert list(receiver.folder.glob("*.corrupt-*")), "the old file is kept"
    outcome.count(first)
    outcome.count(second)


@fault("database corrupted while it runs", TRIES)
def corrupt_while_running(stage: Stage, outcome: Outcome) -> None:
    receiver, first, second = _one_acted_on(stage)
    _corrupt(receiver)

    def recovered() -> bool:
        receiver.post(alert(first.instance, 1))
        return receiver.metric(RECOVERIES) == 1

    with outcome.recovery():
        wait_for(recovered, "a fresh database")
        _repeat_until_done(receiver, second)
    outcome.count(first)
    outcome.count(second)


@fault("the write-ahead log of the database corrupted, SIGKILL before", TRIES)
def corrupt_log(stage: Stage, outcome: Outcome) -> None:
    receiver, first, second = _one_acted_on(stage)
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


@fault("database moved away, and replaced, while it runs")
def moved(stage: Stage, outcome: Outcome) -> None:
    for replaced in (False, True):
        receiver, first, second = _one_acted_on(stage)
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


@fault("database in a folder that cannot be written")
def unwritable(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver(database="/proc/heapwatch/receiver.sqlite3").start(wait=False)
    assert receiver.program.process.wait(20) == 2
    assert "must be writable" in receiver.log.read_text()
    outcome.tried += 1


@fault("a second receiver on the same database")
def second_receiver(stage: Stage, outcome: Outcome) -> None:
    receiver = stage.receiver().start()
    other = stage.receiver(database=str(receiver.database)).start(wait=False)
    assert other.program.process.wait(20) == 2
    assert "another receiver" in other.log.read_text()
    trainer = stage.trainer()
    receiver.post(alert(trainer.instance))
    receiver.decided(1)
    outcome.count(trainer)
