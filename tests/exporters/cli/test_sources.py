import pytest

from heapwatch.cli.sources import PrometheusSource, read_metrics
from heapwatch.errors import Unreachable
from heapwatch.http import client
from tests.exporters.cli.wrong_answers import answering


@pytest.mark.parametrize("body", [b"<html>", b"\xff\x00", b'a{b="c" 1', b'a{="c"} 1', b"{"])
def test_something_else_than_metrics_is_said_to_be_that(body):
    with (
        answering({"/metrics": body}) as server,
        pytest.raises(Unreachable, match="respond with metrics"),
    ):
        read_metrics(server.url)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_that_drips_is_given_up(head, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    with answering({}, drip=0.05, head=head) as server:
        with pytest.raises(Unreachable, match=r"within 0\.3 s"):
            client.get_text(server.url)
        assert server.cut.wait(60), "the server still writes to it"


def test_a_token_follows_no_redirect():
    with answering({}, redirect="/elsewhere") as server:
        with pytest.raises(Unreachable, match="302"):
            client.post_json(f"{server.url}/force_cleanup", {}, "s3cret", 5)
        assert [path for _, path, _ in server.seen] == ["/force_cleanup"]


def test_proxies_of_the_environment_are_not_used_and_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering({"/": b"x" * 2000}) as server:
        assert client.get_text(server.url, 2000) == "x" * 2000
        with pytest.raises(Unreachable, match="more than 1000 bytes"):
            client.get_text(server.url, 1000)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"status": "error"}', b'{"status": "success", "data": []}']
)
def test_something_else_than_prometheus_is_said_to_be_that_or_empty(body):
    with answering({"/api/v1/query": body}) as server:
        source = PrometheusSource(server.url, "trainer")
        if body.endswith(b"[]}"):
            assert source.samples() == []
            return
        with pytest.raises(Unreachable, match=r"not a Prometheus|not respond with JSON"):
            source.samples()


@pytest.fixture
def prometheus(monkeypatch):
    """A source of these series: those of the query of scrape times, then those of the other."""

    def source(*answers):
        answers = iter(answers)

        def get_json(url, parameters):
            result = [{"metric": dict(labels), "value": [1000, "1"]} for labels in next(answers)]
            return {"status": "success", "data": {"resultType": "vector", "result": result}}

        monkeypatch.setattr("heapwatch.cli.sources.get_json", get_json)
        return PrometheusSource("http://127.0.0.1:1", "trainer")

    return source


UP = {"__name__": "up", "instance": "a:1"}


@pytest.mark.parametrize(("kind", "leaks"), [("leak", True), ("threshold", False)])
def test_a_firing_alert_of_prometheus_says_whether_it_is_about_a_leak(prometheus, kind, leaks):
    about = {"alertname": "TrainerLeak", "severity": "critical", "resource": "memory", "kind": kind}
    firing = {"__name__": "ALERTS", "instance": "a:1", "alertstate": "firing", **about}
    (sample,) = prometheus([UP], [UP, firing]).samples()
    assert sample.firing == ("CRITICAL: TrainerLeak fires (memory)",)
    assert sample.leak_fires is leaks


def test_a_lost_trainer_is_shown_with_the_cause(prometheus):
    lost = {"__name__": "job:trainer:lost", "instance": "b:2", "cause": "killed by the kernel, out of memory"}
    known, gone = prometheus([UP], [UP, lost]).samples()
    assert (known.instance, known.problem) == ("a:1", "")
    assert gone.problem == "b:2 was lost: killed by the kernel, out of memory"
