"""The receiver as it is run, between a real Prometheus and trainers that are processes."""

import http.client
import json
import logging
import socket
import sys
from contextlib import ExitStack, suppress

import psutil
import pytest

from heapwatch.http.uvicorn_guards import MAX_FROM_ONE
from heapwatch_receiver.__main__ import PlainFormatter, main
from tests.alerting.harness import alert, wait_for
from tests.support.http_server import serving

pytestmark = pytest.mark.slow


@pytest.fixture
def listener():
    """A server that takes any POST."""
    with serving() as server:
        yield server


def test_a_cleanup_is_done_once_checked_counted_and_marked(scene, listener):
    token = scene.folder("grafana") / "token"
    token.write_text("a-grafana-token")
    trainer = scene.trainer()
    receiver = scene.receiver(grafana_url=listener.url, grafana_token_file=str(token)).start()
    receiver.post(alert(trainer.instance), alert(trainer.instance))
    again, first = receiver.decided(2)
    assert (first["decision"], first["action"]["result"]) == ("act", "helped")
    assert first["action"]["freed_bytes"] == 1.5e9
    assert (again["decision"], again["reason"]) == ("suppress", "duplicate")
    assert len(trainer.done) == 1

    labels = f'trainer_instance="{trainer.instance}",trainer_job="trainer"'
    assert receiver.metric('heapwatch_receiver_actions_total{action="regular",result="helped"}') == 1
    assert receiver.metric('heapwatch_receiver_freed_bytes_total{action="regular"}') == 1.5e9
    assert receiver.metric(f"heapwatch_receiver_cleanup_no_effect{{{labels}}}") == 0
    assert (
        receiver.metric(f'heapwatch_receiver_last_action_timestamp_seconds{{action="regular",{labels}}}')
        > 1.7e9
    )
    posted = wait_for(lambda: listener.requests, "an annotation")[0]
    assert (posted.path, posted.headers["Authorization"]) == ("/api/annotations", "Bearer a-grafana-token")
    mark = json.loads(posted.body)
    assert "helped" in mark["tags"]
    assert "1500.0 MB freed" in mark["text"]
    assert "1500.0 MB freed" in receiver.get("/").text


def test_a_crash_after_the_trainer_answered_loses_and_repeats_nothing(scene):
    trainer, receiver = scene.trainer(), scene.receiver()
    receiver.start({"HEAPWATCH_RECEIVER_TEST_FAILPOINT": "answer-read"})
    receiver.post(alert(trainer.instance))
    assert receiver.program.process.wait(20) == -9
    (row,) = receiver.start().decided(1)
    assert row["action"]["result"] == "helped"
    assert len(trainer.done) == 1


def test_what_does_not_help_climbs_to_people_and_ends(scene, listener):
    trainer = scene.trainer("useless")
    receiver = scene.receiver(
        regular_cooldown=0.1, emergency_cooldown=0.1, escalation_cooldown=0.5, escalation="notify",
        alertmanager_url=listener.url,
    ).start()  # fmt: skip
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


def test_what_does_not_help_is_restarted_where_a_command_is_given(scene):
    trainer = scene.trainer("useless")
    receiver = scene.receiver(
        regular_cooldown=0.1, emergency_cooldown=0.1, escalation_cooldown=0.5, escalation="restart",
        restart_command=["echo", "restarted", "{instance}"],
    ).start()  # fmt: skip
    while not receiver.rows(result="restarted"):
        receiver.post(alert(trainer.instance))
        receiver.decided(1)
    (row,) = receiver.rows(result="restarted")
    assert row["action"]["action"] == "restart"
    assert f"restarted {trainer.instance}" in row["action"]["detail"]


def test_a_dry_run_decides_and_asks_nothing(scene):
    trainer, receiver = scene.trainer(), scene.receiver(dry_run=True).start()
    receiver.post(alert(trainer.instance))
    (row,) = receiver.decided(1)
    assert row["action"]["result"] == "dry_run"
    assert trainer.done == []


def test_the_target_is_prometheus_word_and_not_the_alerts(scene):
    # With more trainers than are served at once, Prometheus is asked about all of them in one query.
    trainer, receiver = scene.trainer(), scene.receiver(parallel_trainers=1).start()
    unknown = alert("127.0.0.1:1", 1)
    other_job = alert(trainer.instance, 2, labels={"job": "elsewhere"})
    ended = alert(trainer.instance, 3, labels={"alertname": "TrainerBodiesHigh"})
    receiver.post(unknown, other_job, ended)
    assert [row["reason"] for row in receiver.decided(3)] == ["not_firing"] * 3
    assert trainer.done == []


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


def test_a_database_that_cannot_be_read_is_said(scene):
    receiver = scene.receiver().start()
    receiver.database.unlink()
    answer = receiver.get("/actions")
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("the database cannot be read: ")


def test_a_slow_client_is_cut_off_and_others_are_served(scene):
    receiver = scene.receiver(request_timeout=0.5).start()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=10) as slow:
        slow.sendall(b"POST /alerts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        assert receiver.get("/healthz").status_code == 200
        with suppress(ConnectionResetError):
            assert slow.recv(100) == b""


def test_hundreds_of_idle_connections_do_not_shut_the_door(scene):
    receiver = scene.receiver(request_timeout=60).start()
    for used in (False, True):
        with ExitStack() as opened:
            for _ in range(400):
                connection = socket.create_connection(("127.0.0.1", receiver.port), timeout=10)
                opened.enter_context(connection)
                assert not used or _answers(connection)
            assert receiver.get("/healthz").status_code == 200
            process = psutil.Process(receiver.program.process.pid)
            assert len([one for one in process.net_connections() if one.raddr]) <= MAX_FROM_ONE
            assert _answers(connection), "the newest are kept"


def _answers(connection: socket.socket) -> bool:
    """Whether a request is answered; the whole answer is read, which may come in parts."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status == 200 and bool(answer.read())


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


def test_a_line_is_bounded():
    assert len(formatted("%s", "x" * 1_000_000)) < 5000
