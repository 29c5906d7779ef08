"""Clients that are slow, silent, too many or speak no HTTP start nothing, and are gone after a while."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from heapwatch.http import server
from tests.support.served_trainer import TOKEN, status_of


def drip(connection):
    for _ in range(200):
        connection.sendall(b"h")
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x00\xff\xfe\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /metrics HTTP/9.9\r\n\r\n", 505),
        (b"GET /metrics HTTP/one\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 17_000, 413),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # a TLS client
    ],
)
def test_garbage_gets_an_error_and_the_next_request_an_answer(shared, request_bytes, status):
    answer = shared.raw(request_bytes)
    assert status_of(answer) == status
    assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])
    assert shared.request("GET", "/healthz")[0].status == 200


def test_request_that_ends_before_its_headers_do_does_nothing(trainer):
    head = f"POST /force_cleanup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    for cut in (
        head,
        head + "Content-Le",
        head + "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
    ):
        assert status_of(trainer.raw(cut.encode(), half_close=True)) == 408
    assert trainer.queue.pending() == 0


def test_pipelined_requests_get_one_answer_and_a_close(shared):
    answer = shared.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    assert answer.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in answer


def test_the_number_of_connections_is_bounded_until_slow_ones_are_cut_off(impatient, trainer):
    waiting = [
        socket.create_connection(("127.0.0.1", trainer.server.port), timeout=20)
        for _ in range(server.MAX_CONNECTIONS)
    ]
    try:
        assert trainer.raw(b"") == b""
        time.sleep(0.6)
        assert trainer.request("GET", "/metrics")[0].status == 200
    finally:
        for client in waiting:
            client.close()


def test_a_client_whose_bytes_keep_arriving_is_cut_off_also_when_it_is_alone(impatient, trainer):
    with socket.create_connection(("127.0.0.1", trainer.server.port), timeout=20) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            drip(client)


def test_where_no_thread_can_be_started_the_accepting_one_serves(trainer, monkeypatch):
    """As in a process with too many threads already, or in Python 3.12.2 at the end of the script."""

    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(3):
        assert trainer.request("GET", "/metrics")[0].status == 200
