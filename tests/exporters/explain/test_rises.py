"""The function of the user's in which memory of C code grows."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from heapwatch.explain import rises
from heapwatch.explain.rises import Rises

MB = 1_000_000


class Memory:
    def __init__(self) -> None:
        self.held = 100 * MB
        self.reads = 0

    def read(self) -> int:
        self.reads += 1
        return self.held


def call(read: Callable[[], Any]) -> Any:
    return read()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setattr(rises, "is_profiled", lambda: False)  # as under coverage
    return Memory()


@pytest.fixture(autouse=True)
def no_profile_is_left(monkeypatch: pytest.MonkeyPatch):
    before = sys.getprofile()
    yield
    sys.setprofile(before)


class Recorder:
    def record(self, memory: Memory) -> None:
        add(memory, MB)
        peak(memory)

    def other(self, memory: Memory) -> None:
        len([memory])


def add(memory: Memory, nbytes: int) -> None:
    memory.held += nbytes


def peak(memory: Memory) -> None:
    memory.held -= MB // 2
    len([])
    memory.held += MB // 2


def run(memory: Memory, seconds: list[float]) -> Rises:
    found = Rises(call, memory.read, lambda: seconds[0])
    recorder = Recorder()
    found.step(60 * MB)
    for _ in range(5):
        recorder.other(memory)
        recorder.record(memory)
    return found


def test_it_is_the_function_in_which_memory_is_higher_than_ever(memory):
    seconds = [0.0]
    found = run(memory, seconds)
    seconds[0] = 10.0
    len([])
    assert sys.getprofile() is None
    assert found.site is not None
    assert found.site.function == "add"
    assert found.site.file == __file__


def test_a_window_ends_after_so_many_calls_or_when_it_is_stopped(memory, monkeypatch):
    monkeypatch.setattr(rises, "_MOST_EVENTS", 4)
    found = run(memory, [0.0])
    assert sys.getprofile() is None
    reads = memory.reads
    found.step(60 * MB)
    assert memory.reads == reads, "the pause is not over"
    monkeypatch.undo()
    found = run(memory, [0.0])
    assert sys.getprofile() is not None
    found.stop()
    len([])
    assert sys.getprofile() is None


@pytest.mark.parametrize("growth", [0.0, 60.0 * MB])
def test_no_window_without_growth_or_in_a_program_that_is_profiled(growth):
    sys.setprofile(ignored := lambda *_: None)
    memory = Memory()
    Rises(call, memory.read).step(growth)
    assert sys.getprofile() is ignored
    sys.setprofile(None)
    assert memory.reads == 0


def test_nothing_is_named_where_it_rises_in_many_functions_or_by_little(memory):
    found = Rises(call, memory.read, lambda: 0.0)
    assert found.site is None
    found.step(1.0)
    add(memory, 1000)
    sys.setprofile(None)
    assert found.site is None


def test_a_profiler_that_begins_before_the_window_stays(memory):
    def ask(read: Callable[[], Any]) -> Any:
        sys.setprofile(ignored)
        return read()

    Rises(ask, memory.read).step(60 * MB)
    found = sys.getprofile()
    sys.setprofile(None)
    assert found is ignored


def ignored(*_: object) -> None:
    """A profile function of the program."""


def test_a_reading_that_fails_ends_the_window_and_not_the_program(memory, monkeypatch):
    found = Rises(call, memory.read, lambda: 0.0)
    found.step(60 * MB)
    monkeypatch.setattr(found, "_resident", Mock(side_effect=RuntimeError))
    len([])
    assert sys.getprofile() is None


def take(memory: Memory) -> None:
    memory.held += len("x") * MB
    memory.reads += 0


def test_a_call_without_an_event_has_the_line_of_its_arguments(memory):
    """As of a function of ctypes: what it takes is seen when the function that calls it returns."""
    found = Rises(call, memory.read, lambda: 0.0)
    found.step(60 * MB)
    take(memory)
    found.stop()
    sys.setprofile(None)
    assert found.site is not None
    assert found.site.line == take.__code__.co_firstlineno + 1


class OutOfTime(Exception):
    """What a signal handler of the program raises."""


def work_in_a_window(found: Rises) -> None:
    sys.setprofile(found._note)
    len([])


def test_what_a_signal_handler_raises_in_a_window_reaches_the_program():
    def expire(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, expire)
    found = Rises(call, lambda: signal.raise_signal(signal.SIGALRM) or 0, lambda: 0.0)
    try:
        with pytest.raises(OutOfTime):
            work_in_a_window(found)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("install", [sys.setprofile, threading.setprofile])
def test_a_program_that_is_profiled_in_any_thread_counts_as_profiled(install):
    install(lambda *_: None)
    try:
        assert rises.is_profiled()
    finally:
        install(None)
