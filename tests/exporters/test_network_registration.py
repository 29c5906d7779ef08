"""Registering with a stack on another machine."""

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import heapwatch
from heapwatch.http.signing import SCHEME
from heapwatch.registration import NetworkRegistration


class Receiver(ThreadingHTTPServer):
    """Notes what is posted, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.posted: list[tuple[str, str, dict[str, object]]] = []
        self.came = threading.Semaphore(0)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.path, self.headers["Authorization"].split()[0], body))
        answer = b'{"error": "not today"}'
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.server.came.release()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_trainer_registers_and_takes_it_back_once(receiver: Receiver) -> None:
    registration = NetworkRegistration(receiver.url, "0.0.0.0", 7777, token="secret", environ={})
    assert registration.refresh() is False
    assert receiver.came.acquire(timeout=30)
    registration.refresh()
    registration.remove()
    registration.remove()
    registration.refresh()
    assert receiver.posted == [
        ("/targets", SCHEME, {"port": 7777, "hosts": ["127.0.0.1"]}),
        ("/targets", SCHEME, {"port": 7777, "hosts": ["127.0.0.1"], "ends": True}),
    ]
    assert registration.token == "secret"
    assert registration.describe() == f"registers at {receiver.url}/targets"


def test_start_registers_and_joins_no_stack_of_this_machine(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEAPWATCH_REGISTER", receiver.url)
    monkeypatch.setenv("HEAPWATCH_TOKEN", "secret")
    with heapwatch.start("far", port=0) as watch:
        assert receiver.came.acquire(timeout=30)
        assert watch.server is not None
        port = watch.server.port
        assert watch.server.token == "secret"
        assert watch._exporter.registration is not None
        assert watch._exporter.registration.folder is None
    body = {"port": port, "hosts": ["127.0.0.1"]}
    assert [body for _, _, body in receiver.posted] == [body, {**body, "ends": True}]


def test_names_of_the_outside_of_a_nat_are_signed_too(receiver: Receiver) -> None:
    named = {"HEAPWATCH_ALLOWED_HOSTS": "10.0.0.9:7777, fd00::9,gpu-7"}
    registration = NetworkRegistration(receiver.url, "0.0.0.0", 7777, token="secret", environ=named)
    registration.refresh()
    assert receiver.came.acquire(timeout=30)
    registration.remove()
    assert receiver.posted[0][2]["hosts"] == ["127.0.0.1", "10.0.0.9", "fd00::9", "gpu-7"]


def test_a_refusal_is_logged_once_and_tried_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heapwatch.registration._RETRY_SECONDS", 0.01)
    receiver.status = 429
    registration = NetworkRegistration(receiver.url, "0.0.0.0", 7777, token="secret")
    registration.refresh()
    assert all(receiver.came.acquire(timeout=30) for _ in range(3))
    registration.remove()
    reported = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(reported) == 1
    assert "answers 429: not today" in reported[0]
    assert "secret" not in reported[0]


@pytest.mark.parametrize(
    ("url", "host", "token", "reason"),
    [
        ("http://stack:9095", "0.0.0.0", None, "it needs the stack's token"),
        ("http://stack:9095", "127.0.0.1", "secret", "another machine does not reach loopback"),
        ("ftp://stack", "0.0.0.0", "secret", "is not an address"),
        ("http://stack:9095", "0.0.0.0", "not printable\n", "printable ASCII"),
    ],
)
def test_what_cannot_register_says_why_and_trains_on(
    url: str, host: str, token: str | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    registration = NetworkRegistration(url, host, 7777, token=token, environ={})
    registration.refresh()
    registration.remove()
    assert reason in registration.describe()
    assert [reason in record.getMessage() for record in caplog.records] == [True]


def test_a_machine_without_a_further_thread_is_tried_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    registration = NetworkRegistration(receiver.url, "0.0.0.0", 7777, token="secret", environ={})
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        registration.refresh()
    registration.refresh()
    assert receiver.came.acquire(timeout=30)
    registration.remove()
    assert [record.getMessage() for record in caplog.records] == [
        "not registered with the stack: can't start new thread"
    ]
