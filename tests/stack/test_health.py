"""What is said of a service that answers, answers otherwise or does not, and of the way of an alert."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from heapwatch_stack import health
from heapwatch_stack.errors import StackError
from heapwatch_stack.health import condition
from heapwatch_stack.settings import Endpoint, Settings
from tests.support.http_server import Request, Server, serving

ANSWERS = {
    "/well": (200, b""),
    "/stalled": (503, b'{"reason": "training stands still"}'),
    "/missing": (404, b"[]"),
}


@pytest.fixture
def service() -> Iterator[Server]:
    with serving(lambda request: ANSWERS[request.path]) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "said"),
    [("/well", "healthy"), ("/stalled", "training stands still"), ("/missing", "not answering")],
)
def test_a_service_that_is_not_ready_says_why(service: Server, path: str, said: str) -> None:
    assert condition(Settings.from_environment({}), Endpoint("trainer", service.port, "X", path)) == said


def test_what_answers_in_place_of_a_service_is_not_taken_for_it(service: Server) -> None:
    endpoint = Endpoint("receiver", service.port, "X", "/well")
    settings = Settings.from_environment({})
    assert health.supervised(settings, endpoint, {"statename": "RUNNING"}) == health.HEALTHY
    assert health.supervised(settings, endpoint, {"statename": "BACKOFF"}) == "backoff"


def test_a_reload_counts_from_the_moment_of_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker exec` may return after the files were read."""
    text = (
        "prometheus_config_last_reload_successful 1\n"
        "prometheus_config_last_reload_success_timestamp_seconds 1000\n"
    )
    answer = httpx.Response(200, text=text, request=httpx.Request("GET", "http://127.0.0.1"))
    monkeypatch.setattr(health._CLIENT, "get", lambda *_, **__: answer)
    settings = Settings.from_environment({})
    endpoint = settings.endpoints()["prometheus"]
    health.wait_reloaded(settings, endpoint, since=999.5, patience=5)
    with pytest.raises(StackError, match="rejected its changed configuration and keeps the old one"):
        health.wait_reloaded(settings, endpoint, since=1001, patience=0.5)


class AlertPath:
    """Alertmanager and receiver; `delivers` says whether an alert goes on to the receiver."""

    def __init__(self, delivers: bool, last: float = 0.0) -> None:
        self.delivers, self.last = delivers, last
        self.posted: list[dict] = []

    def __call__(self, request: Request) -> tuple[int, bytes]:
        if request.method == "POST":
            self.posted += json.loads(request.body)
            self.last = time.time() if self.delivers else self.last
        return 200, f"{health.LAST_HEARTBEAT} {self.last}\n".encode()

    def prove(self, patience: float = 30) -> None:
        with ExitStack() as stack:
            ports = {
                f"HEAPWATCH_{name}_PORT": str(stack.enter_context(serving(self)).port)
                for name in ("ALERTMANAGER", "RECEIVER")
            }
            health.prove_delivery(Settings.from_environment(ports), patience)


def test_a_heartbeat_that_arrives_is_proof() -> None:
    path = AlertPath(delivers=True)
    path.prove()
    (posted,) = path.posted
    assert posted["labels"]["alertname"] == "Watchdog"


def test_an_old_heartbeat_is_no_proof() -> None:
    with pytest.raises(StackError, match="no alert travels from Alertmanager to the receiver"):
        AlertPath(delivers=False, last=time.time() - 1).prove(patience=0.5)
