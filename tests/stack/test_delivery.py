"""An Alertmanager and a receiver that answer, and what travels between them or does not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from heapwatch_stack import delivery
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings


class Pair:
    """Both services in one server; `delivers` says whether an alert goes on to the receiver."""

    def __init__(self, delivers: bool) -> None:
        self.delivers = delivers
        self.last = 0.0
        self.rejected = 0
        self.posted: list[dict] = []


@contextmanager
def serving(pair: Pair) -> Iterator[Settings]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            pair.posted += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if pair.delivers:
                pair.last = time.time()
            else:
                pair.rejected += 1
            self.answer("")

        def do_GET(self) -> None:
            self.answer(
                f'{delivery.LAST_HEARTBEAT} {pair.last}\n{delivery.REJECTED}{{code="401"}} {pair.rejected}\n'
            )

        def answer(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    threads = [threading.Thread(target=server.serve_forever, args=(0.05,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        names = ("HEAPWATCH_ALERTMANAGER_PORT", "HEAPWATCH_RECEIVER_PORT")
        ports = {name: str(s.server_address[1]) for name, s in zip(names, servers, strict=True)}
        yield Settings.from_environment(ports)
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()


def test_a_heartbeat_that_arrives_is_proof() -> None:
    pair = Pair(delivers=True)
    with serving(pair) as settings:
        delivery.prove(settings, fresh=True)
        assert pair.posted[0]["labels"]["alertname"] == "Watchdog"
        delivery.prove(settings, fresh=False)
    assert len(pair.posted) == 1


def test_a_receiver_that_refuses_alertmanager_ends_the_start() -> None:
    with (
        serving(Pair(delivers=False)) as settings,
        pytest.raises(StackError, match=r"no alert travels .* \(the receiver answers 401\): heapwatch logs"),
    ):
        delivery.prove(settings, fresh=True, patience=0.5)


def test_an_old_heartbeat_is_no_proof() -> None:
    pair = Pair(delivers=True)
    pair.last = time.time() - 10 * delivery.RECENT_SECONDS
    with serving(pair) as settings:
        delivery.prove(settings, fresh=False)
    assert len(pair.posted) == 1
