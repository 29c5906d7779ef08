"""The receiver as it is run, between a real Prometheus and fake trainers."""

import json
import logging
import resource
import sys
import threading
import time
from collections import Counter
from itertools import count

import httpx
import pytest

from heapwatch_receiver.__main__ import PlainFormatter, main
from tests.support.alerting.harness import alert, wait_for
from tests.support.http_server import serving

pytestmark = pytest.mark.slow


@pytest.fixture
def listener():
    """A server that takes any POST."""
    with serving() as server:
        yield server


def test_a_cleanup_is_done_once_checked_and_counted(scene):
    trainer = scene.trainer()
    receiver = scene.receiver().start()
    receiver.post(alert(trainer.instance), alert(trainer.instance))
    again, first = receiver.decided(2)
    assert (first["decision"], first["action"]["result"]) == ("act", "helped")
    assert first["action"]["freed_bytes"] == 1.5e9
    assert (again["decision"], again["reason"]) == ("suppress", "duplicate")
    assert len(trainer.done) == 1

    labels = f'trainer_instance="{trainer.instance}",trainer_job="trainer"'
    assert receiver.metric('heapwatch_receiver_actions_total{action="regular",result="helped"}') == 1
    assert receiver.metric(f"heapwatch_receiver_cleanup_no_effect{{{labels}}}") == 0
    assert "1.5 GB freed" in receiver.get("/").text


def test_nothing_acknowledged_is_lost_by_sigkill_in_the_middle_of_deliveries(scene):
    receiver = scene.receiver().start()
    numbers, acknowledged, ended = count(1), [], threading.Event()

    def deliver() -> None:
        while not ended.is_set():
            number = next(numbers)
            try:
                if receiver.post(alert("127.0.0.1:1", number)).status_code == 200:
                    acknowledged.append(f"{number:016x}")
            except httpx.TransportError:
                time.sleep(0.01)

    senders = [threading.Thread(target=deliver) for _ in range(4)]
    for sender in senders:
        sender.start()
    for _ in range(2):
        known = len(acknowledged)
        wait_for(lambda known=known: len(acknowledged) > known + 50, "alerts are acknowledged")
        receiver.program.kill()
        receiver.start()
    ended.set()
    for sender in senders:
        sender.join()
    rows = receiver.all_rows()
    kept = Counter(row["fingerprint"] for row in rows)
    assert [kept[fingerprint] for fingerprint in acknowledged] == [1] * len(acknowledged)
    wait_for(lambda: receiver.metric("heapwatch_receiver_queue_length") == 0, "every alert is decided")
    assert all(row["reason"] for row in receiver.all_rows())


def test_a_crash_while_the_trainer_cleans_up_loses_and_repeats_nothing(scene):
    trainer, receiver = scene.trainer("slow"), scene.receiver().start()
    receiver.post(alert(trainer.instance))
    wait_for(lambda: receiver.rows()[0]["action"]["state"] == "requesting", "the request")
    receiver.program.kill()
    (row,) = receiver.start().decided(1)
    assert row["action"]["result"] == "helped"
    assert len(trainer.done) == 1


def test_a_restart_command_that_was_interrupted_is_not_run_again(scene):
    trainer, runs = scene.trainer("useless"), scene.folder("restarts") / "runs"
    command = ["sh", "-c", f"echo $0 >> {runs}; sleep 20", "{instance}"]
    receiver = scene.receiver(restart_command=command, cooldown=0.1).start()
    while not runs.exists():
        receiver.post(alert(trainer.instance))
        wait_for(lambda: runs.exists() or receiver.settled(), "a decision")
    receiver.program.kill()
    receiver.start().decided(3)
    (row,) = receiver.rows(action="restart")
    assert row["action"]["result"] == "failed"
    assert runs.read_text() == f"{trainer.instance}\n"


def test_what_does_not_help_climbs_to_people_and_ends(scene, listener):
    trainer = scene.trainer("useless")
    receiver = scene.receiver(cooldown=0.1, alertmanager_url=listener.url).start()
    while not receiver.rows(decision="give_up"):
        receiver.post(alert(trainer.instance))
        receiver.decided(1)
    done = [row["action"] for row in reversed(receiver.rows()) if row["action"]]
    assert [(one["action"], one["result"]) for one in done] == [
        ("regular", "no_effect"), ("emergency", "no_effect"), ("notify", "notified"),
    ]  # fmt: skip
    (posted,) = listener.requests
    assert posted.path == "/api/v2/alerts"
    (reported,) = json.loads(posted.body)
    assert reported["labels"]["alertname"] == "TrainerCleanupEscalated"
    assert "action" not in reported["labels"], "telling people must not ask for a cleanup"
    labels = f'trainer_instance="{trainer.instance}",trainer_job="trainer"'
    assert receiver.metric(f"heapwatch_receiver_cleanup_no_effect{{{labels}}}") == 1
    receiver.post(alert(trainer.instance, status="resolved"))
    assert receiver.metric(f"heapwatch_receiver_cleanup_no_effect{{{labels}}}") == 0


def test_a_dry_run_decides_and_asks_nothing(scene):
    trainer, receiver = scene.trainer(), scene.receiver(dry_run=True).start()
    receiver.post(alert(trainer.instance))
    (row,) = receiver.decided(1)
    assert row["action"]["result"] == "dry_run"
    assert trainer.done == []


def test_the_target_is_prometheus_word_and_not_the_alerts(scene):
    trainer, receiver = scene.trainer(), scene.receiver().start()
    unknown = alert("127.0.0.1:1", 1)
    other_job = alert(trainer.instance, 2, labels={"job": "elsewhere"})
    ended = alert(trainer.instance, 3, labels={"alertname": "TrainerBodiesHigh"})
    receiver.post(unknown, other_job, ended)
    assert [row["reason"] for row in receiver.decided(3)] == ["not_firing"] * 3
    assert trainer.done == []


def test_a_trainer_that_is_well_again_is_cleaned_up_once(scene):
    receiver = scene.receiver(REQUEST_DEADLINE_SECONDS=60).start()
    trainers = scene.trainers("error", "garbage", "huge", "pending", "limited")
    receiver.post(*(alert(trainer.instance, number) for number, trainer in enumerate(trainers)))
    wait_for(lambda: receiver.log.read_text().count("asking again") > 10, "failed tries of all")
    for trainer in trainers:
        trainer.mode = "ok"
    rows = receiver.decided(len(trainers))
    assert {row["action"]["result"] for row in rows} == {"helped"}
    assert [len(trainer.done) for trainer in trainers] == [1] * len(trainers)


def test_a_trainer_that_stays_broken_ends_with_the_reason(scene):
    receiver = scene.receiver(REQUEST_DEADLINE_SECONDS=1).start()
    expected = {
        "error": ("failed", "answered 500"),
        "pending": ("pending", "no safe point"),
        "redirect": ("failed", "answered 302"),
        "forbidden": ("refused", "no token configured"),
    }
    trainers = {trainer.instance: trainer.mode for trainer in scene.trainers(*expected)}
    receiver.post(*(alert(instance, number) for number, instance in enumerate(trainers)))
    for row in receiver.decided(len(trainers)):
        result, detail = expected[trainers[row["instance"]]]
        assert row["action"]["result"] == result
        assert detail in row["action"]["detail"]


def test_a_trainer_that_hangs_delays_only_itself(scene):
    stuck, trainer = scene.trainers("hang", "ok")
    receiver = scene.receiver(TIMEOUT_SECONDS=30, REQUEST_DEADLINE_SECONDS=60).start()
    receiver.post(alert(stuck.instance, 1))
    receiver.post(alert(trainer.instance, 2))
    trainer.wait_until_done("the one that is well", 20)
    receiver.program.kill()


def test_alerts_wait_for_a_prometheus_that_is_down(scene):
    prometheus = scene.own_prometheus()
    receiver = scene.receiver(prometheus_url=prometheus.url).start()
    trainer = scene.trainer(prometheus=prometheus)
    prometheus.program.kill()
    receiver.post(alert(trainer.instance))
    wait_for(lambda: "no usable answer" in receiver.log.read_text(), "a failed question")
    assert receiver.rows(decision="waiting")
    prometheus.start()
    while not trainer.done:  # Alertmanager repeats: just started, Prometheus may know nothing of the trainer
        receiver.post(alert(trainer.instance))
        time.sleep(0.5)
    assert len(trainer.done) == 1


def test_without_prometheus_the_effect_is_judged_by_the_trainers_own_figures(scene):
    prometheus = scene.own_prometheus()
    receiver = scene.receiver(prometheus_url=prometheus.url, CHECK_AFTER_SECONDS=1).start()
    trainer = scene.trainer(prometheus=prometheus)
    receiver.post(alert(trainer.instance))
    wait_for(lambda: receiver.rows()[0]["action"]["state"] == "answered", "the answer")
    prometheus.program.kill()
    (row,) = receiver.decided(1)
    assert row["action"]["result"] == "helped"
    assert "alert ended" not in row["action"]["detail"]


def test_a_full_disk_is_said_and_survived(scene):
    receiver, trainer = scene.receiver().start(), scene.trainer()

    def limit_files(most: int) -> None:
        limits = (most, resource.RLIM_INFINITY)
        resource.prlimit(receiver.program.process.pid, resource.RLIMIT_FSIZE, limits)

    limit_files(4096)
    answer = receiver.post(alert(trainer.instance))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    limit_files(resource.RLIM_INFINITY)
    assert receiver.post(alert(trainer.instance)).status_code == 200
    receiver.decided(1)
    assert len(trainer.done) == 1


def test_alertmanager_delivers_what_it_could_not_and_two_of_them_ask_for_one_cleanup(scene):
    receiver = scene.receiver()
    pair = [scene.alertmanager(receiver) for _ in range(2)]  # they know nothing of each other
    prometheus = scene.own_prometheus(*pair)
    receiver.settings["prometheus_url"] = prometheus.url
    trainer = scene.trainer(prometheus=prometheus)
    for one in pair:
        wait_for(lambda one=one: "connection refused" in one.program.log.read_text(), "a failed delivery")
    trainer.may_clean_up.clear()
    receiver.start()
    wait_for(lambda: len(receiver.rows()) > 1, "both deliver")
    trainer.may_clean_up.set()
    trainer.wait_until_done()
    wait_for(lambda: len(receiver.rows(decision="close")) > 1, "both say that it ended")
    assert len(trainer.done) == 1


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"HEAPWATCH_RECEIVER_PORT": "a"}, "port: 'a' is not allowed"),
        ({"HEAPWATCH_TOKEN": ""}, "no token: set HEAPWATCH_TOKEN_FILE"),
        ({"HEAPWATCH_RECEIVER_DATABASE": "/proc/x/db"}, "database /proc/x/db: its folder must be writable"),
    ],
)
def test_a_wrong_start_ends_with_one_clear_line(tmp_path, monkeypatch, capsys, environment, named):
    base = {"HEAPWATCH_TOKEN": "t", "HEAPWATCH_RECEIVER_DATABASE": str(tmp_path / "db")}
    monkeypatch.delenv("HEAPWATCH_TOKEN_FILE", raising=False)
    monkeypatch.setattr("heapwatch_receiver.__main__._log_to_stderr", lambda: None)
    for name, value in {**base, **environment}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


def formatted(message, *arguments, error=None):
    info = None
    if error is not None:
        try:
            raise error
        except type(error):
            info = sys.exc_info()
    record = logging.LogRecord("heapwatch", logging.INFO, "", 0, message, arguments, info)
    return PlainFormatter("%(levelname)s %(message)s").format(record)


def test_an_alert_cannot_write_log_lines_of_its_own():
    line = formatted("%s: failed", "a:1\n2026-01-01 INFO helped\x1b[1A")
    assert line == "INFO a:1\\n2026-01-01 INFO helped\\x1b[1A: failed"


def test_a_traceback_keeps_its_lines_and_nothing_else():
    text = formatted("failed", error=ValueError("\x1b]0;owned\x07"))
    _, *traceback = text.split("\n")
    assert len(traceback) >= 3
    assert all(line.isprintable() and line.startswith("  ") for line in traceback)
