import logging
import os

import pytest

from heapwatch.measure.introspection import exclusive_reads
from heapwatch.runtime import environment
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.safe_point import SafePoint


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now=1000.0):
        self.now = now
        self.used = 0.0

    def __call__(self):
        return self.now

    def cpu(self):
        """CPU seconds of the calling thread."""
        return self.used

    def work(self, seconds, held_up=0.0):
        """Compute for so long, and be kept from it for so long by others."""
        self.used += seconds
        self.now += seconds + held_up


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    """No test writes into the user's state or meets the user's settings."""
    for name in [name for name in os.environ if name.startswith("HEAPWATCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path / "targets"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr("heapwatch.stacks._around", lambda: tmp_path / "no clone")
    environment._said.clear()


class _Anything(set):
    """Holds whatever is asked for."""

    def __contains__(self, one):
        return True


@pytest.fixture(autouse=True)
def others_wait(monkeypatch):
    """The threads of the test runner, and what other tests left running, change nothing that a test reads."""
    monkeypatch.setattr(exclusive_reads, "_waiting", _Anything())


@pytest.fixture(autouse=True)
def own_logging():
    """What a watch gave the logger goes with its test."""
    log = logging.getLogger("heapwatch")
    level, handlers, filters = log.level, log.handlers[:], log.filters[:]
    yield
    log.setLevel(level)
    log.handlers[:], log.filters[:] = handlers, filters


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def failures():
    return Failures()


@pytest.fixture
def safe_point(failures, clock):
    return SafePoint(failures, budget=0.01, clock=clock, cpu_clock=clock.cpu)
