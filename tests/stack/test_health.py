"""What is said of a service that answers, answers otherwise, or does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from heapwatch_stack import health
from heapwatch_stack.endpoints import Endpoint, endpoints
from heapwatch_stack.errors import StackError
from heapwatch_stack.health import condition
from heapwatch_stack.settings import Settings

ANSWERS = {
    "/well": (200, b""),
    "/stalled": (503, b'{"reason": "training stands still"}'),
    "/broken": (503, b""),
    "/missing": (404, b"[]"),
}


@pytest.fixture
def service() -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = ANSWERS[self.path]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/well", "healthy"),
        ("/stalled", "training stands still"),
        ("/broken", "not answering"),
        ("/missing", "not answering"),
    ],
)
def test_a_service_that_is_not_ready_says_why(service: HTTPServer, path: str, said: str) -> None:
    endpoint = Endpoint("trainer", service.server_port, "X", path)
    assert condition(Settings.from_environment({}), endpoint) == said


def test_nobody_there_is_not_answering() -> None:
    assert condition(Settings.from_environment({}), Endpoint("trainer", 1, "X", "/")) == "not answering"


def test_what_takes_long_is_said_and_waited_for(service: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SAYS_AFTER", 0.0)
    slow = Endpoint("walker", service.server_address[1], "PORT", "/broken")
    said: list[str] = []

    def train() -> None:
        if len(said) > 2:
            ANSWERS["/broken"] = (200, b"")

    settings = Settings.from_environment({"HEAPWATCH_STATE": "/nowhere"})
    try:
        health.wait_healthy(settings, [slow], train, said.append)
    finally:
        ANSWERS["/broken"] = (503, b"")
    assert said[0] == "still starting: walker"
    assert said[-1] == "walker is healthy"


def test_a_reload_counts_from_the_moment_of_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker exec` may return after the files were read."""
    text = (
        "prometheus_config_last_reload_successful 1\n"
        "prometheus_config_last_reload_success_timestamp_seconds 1000\n"
    )
    monkeypatch.setattr(httpx, "get", lambda *_, **__: httpx.Response(200, text=text))
    settings = Settings.from_environment({})
    endpoint = endpoints(settings, grafana=False)["prometheus"]
    health.wait_reloaded(settings, endpoint, since=999.5, patience=5)
    with pytest.raises(StackError, match="rejected its changed configuration and keeps the old one"):
        health.wait_reloaded(settings, endpoint, since=1001, patience=0.5)
