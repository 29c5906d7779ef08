"""A server starts on its port, sleeps while nobody asks, and stops without a trace."""

from __future__ import annotations

import errno
import threading
import time

import pytest

from heapwatch.http import server
from heapwatch.http.endpoints import ServedTrainer
from heapwatch.http.server import PortTaken, serve
from heapwatch.http.status import Status
from heapwatch.runtime.cleanup import CleanupQueue
from heapwatch.runtime.exposition import Snapshots
from tests.support.served_trainer import HEALTHY, Exposition, Trainer
from tests.support.waiting import wait_for


def test_levels_are_observed_although_nobody_asks(monkeypatch):
    monkeypatch.setattr(server, "OBSERVATION_SECONDS", 0.05)
    running = Trainer()
    try:
        wait_for(lambda: running.exposition.collections >= 3)
        running.exposition.hold.clear()  # a source that hangs keeps the observer, not the server
        collections = running.exposition.collections
        wait_for(lambda: running.exposition.collections > collections)
        assert running.request("GET", "/nothing")[0].status == 404
    finally:
        running.exposition.hold.set()
        running.server.stop()


def test_while_nobody_asks_it_stops_at_once_and_once(trainer):
    began = time.monotonic()
    trainer.server.stop()
    trainer.server.stop()
    assert time.monotonic() - began < 1


def test_no_thread_outlives_stop():
    before = set(threading.enumerate())
    running = Trainer()
    running.request("GET", "/metrics")
    running.server.stop()
    wait_for(lambda: set(threading.enumerate()) <= before)


def test_a_taken_port_is_an_error(trainer):
    with pytest.raises(PortTaken, match=f"port {trainer.server.port} .*or 0 for any") as caught:
        server_at(trainer.server.port)
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize(("searched", "most"), [(100, 100), (0, 65535)])
def test_port_search_moves_to_the_next_free_one_else_to_any(monkeypatch, trainer, searched, most):
    monkeypatch.setattr("heapwatch.http.server._PORTS_SEARCHED", searched)
    moved = server_at(trainer.server.port, port_search=True)
    try:
        assert moved.port not in (0, trainer.server.port)
        assert moved.port <= trainer.server.port + most
    finally:
        moved.stop()


def server_at(port, host="127.0.0.1", **options):
    cleanups = CleanupQueue(dict, lambda: None, lambda: None)
    trainer = ServedTrainer(Snapshots(Exposition()), Status(lambda: HEALTHY), cleanups, dict)
    return serve(host, port, trainer, **options)
