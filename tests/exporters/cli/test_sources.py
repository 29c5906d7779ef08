import http.server
import json
import threading
import time

import pytest

from heapwatch.cli.sources import PrometheusSource, TrainerSource, read_metrics
from heapwatch.errors import Unreachable
from heapwatch.http import client


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request with what the server holds; `slow` drips a byte at a time without end."""

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        self.send_response(self.server.status)
        for name, value in self.server.fields.items():
            self.send_header(name, value)
        self.end_headers()
        if not self.server.slow:
            self.wfile.write(self.server.body)
            return
        while not self.server.cut.is_set():
            try:
                self.wfile.write(b"x")
            except OSError:
                self.server.cut.set()
            time.sleep(0.05)

    do_POST = do_GET

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        running.seen, running.status, running.fields, running.body, running.slow = [], 200, {}, b"", False
        running.cut = threading.Event()
        running.url = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        yield running
        running.cut.set()
        running.shutdown()


@pytest.mark.parametrize("body", [b"<html>", b"\xff\x00", b'a{b="c" 1', b'a{="c"} 1', b"{"])
def test_something_else_than_metrics_is_said_to_be_that(server, body):
    server.body = body
    with pytest.raises(Unreachable, match="does not respond with metrics"):
        read_metrics(server.url)


def test_one_trainers_problem_is_not_anothers(server):
    server.body = b'trainer_bodies{type="static"} 1\n'
    good, bad = TrainerSource([server.url, "http://127.0.0.1:1"]).samples()
    assert good.readings.value("trainer_bodies") == 1
    assert "does not answer" in bad.problem


def test_answer_that_drips_is_given_up(server, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    server.slow = True
    with pytest.raises(Unreachable, match=r"within 0\.3 s"):
        client.get_text(server.url)
    assert server.cut.wait(60), "the server still writes to it"


def test_answer_without_end_is_given_up(server):
    server.body = b"x" * 2000
    with pytest.raises(Unreachable, match="more than 1000 bytes"):
        client.get_text(server.url, 1000)


def test_token_follows_no_redirect(server):
    server.status, server.fields = 302, {"Location": f"{server.url}/elsewhere"}
    with pytest.raises(Unreachable, match="302"):
        client.post_json(f"{server.url}/force_cleanup", {}, "s3cret", 5)
    assert [path for path, _ in server.seen] == ["/force_cleanup"]


def test_proxies_of_the_environment_are_not_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server.body = b"ok"
    assert client.get_text(server.url) == "ok"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"status": "error"}', b'{"status": "success", "data": []}']
)
def test_something_else_than_prometheus_is_said_to_be_that_or_empty(server, body):
    server.body = body
    source = PrometheusSource(server.url, "trainer")
    if body.endswith(b"[]}"):
        assert source.samples() == []
        return
    with pytest.raises(Unreachable, match=r"not a Prometheus|not respond with JSON"):
        source.samples()


@pytest.mark.parametrize(("kind", "leaks"), [("leak", True), ("threshold", False)])
def test_a_firing_alert_of_prometheus_says_whether_it_is_about_a_leak(server, kind, leaks):
    alert = {
        "__name__": "ALERTS",
        "instance": "a:1",
        "alertstate": "firing",
        "alertname": "TrainerLeak",
        "severity": "critical",
        "resource": "memory",
        "kind": kind,
    }
    found = {"status": "success", "data": {"result": [{"metric": alert, "value": [1, "1"]}]}}
    server.body = json.dumps(found).encode()
    (sample,) = PrometheusSource(server.url, "trainer").samples()
    assert sample.firing == ("CRITICAL: TrainerLeak fires (memory)",)
    assert sample.leak_fires is leaks


def vector(*series):
    """The answer to an instant query."""
    result = [{"metric": labels, "value": [1000, "1"]} for labels in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def test_a_lost_trainer_is_shown_with_the_cause(server, monkeypatch):
    up = {"__name__": "up", "instance": "a:1"}
    lost = {"__name__": "job:trainer:lost", "instance": "b:2", "cause": "killed by the kernel, out of memory"}
    answers = iter([vector(up), vector(up, lost)])
    source = PrometheusSource(server.url, "trainer")
    query = source._query

    def next_query(expression):
        server.body = next(answers)
        return query(expression)

    monkeypatch.setattr(source, "_query", next_query)
    known, gone = source.samples()
    assert (known.instance, known.problem) == ("a:1", "")
    assert gone.problem == "b:2 was lost: killed by the kernel, out of memory"
