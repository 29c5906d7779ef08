"""Trainers that serve."""

from __future__ import annotations

import pytest

from heapwatch.http import endpoints, server
from tests.support.served_trainer import Trainer


@pytest.fixture(scope="module")
def shared():
    """A trainer for the tests that change nothing about it."""
    running = Trainer()
    yield running
    running.server.stop()


@pytest.fixture
def trainer():
    running = Trainer()
    yield running
    running.exposition.hold.set()
    running.server.stop()


@pytest.fixture
def impatient(monkeypatch):
    """Time limits short enough to wait for."""
    monkeypatch.setattr(endpoints, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(server, "ROOM_SECONDS", 0.1)
    monkeypatch.setattr(endpoints, "COLLECTION_SECONDS", 0.2)
    monkeypatch.setattr(endpoints, "HEALTH_SECONDS", 0.2)
