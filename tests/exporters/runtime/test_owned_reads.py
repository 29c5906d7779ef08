"""Who is asked for a read: the thread that steps, else the main thread, between two byte codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from heapwatch.runtime.failures import Failures
from heapwatch.runtime.owned_reads import OwnedReads
from heapwatch.runtime.safe_point import Request, SafePoint


def asked_by_another(ask: Callable[[], Any], meanwhile: Callable[[threading.Thread], None]) -> list[Any]:
    """What `ask` returned in another thread, while the main thread ran `meanwhile`."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(ask()), daemon=True)
    thread.start()
    meanwhile(thread)
    thread.join(30)
    return results


def compute(thread: threading.Thread) -> None:
    while thread.is_alive():
        pass


def answer_of(reads: OwnedReads) -> int | None:
    """The thread that answered, while the main thread computes."""
    return asked_by_another(lambda: reads.ask(threading.get_ident), compute)[0]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a quarter of a second may be too short."""
    monkeypatch.setattr("heapwatch.runtime.owned_reads._SECONDS", 30.0)


@contextmanager
def stepping(point: SafePoint, until: Callable[[threading.Event], object]) -> Iterator[threading.Thread]:
    """A thread that has stepped, and then does this until the event is set."""
    ended = threading.Event()

    def train() -> None:
        point.visit(stepping=True)
        until(ended)

    training = threading.Thread(target=train, daemon=True)
    training.start()
    while point.stepping_thread() is None:
        pass
    try:
        yield training
    finally:
        ended.set()
        training.join(30)


@pytest.mark.usefixtures("patient")
def test_a_thread_that_steps_is_asked_at_its_steps() -> None:
    point = SafePoint(Failures(), budget=0.1)
    reads = OwnedReads(point)

    def step(ended: threading.Event) -> None:
        while not ended.is_set():
            point.visit(stepping=True)

    with stepping(point, step) as training:
        assert answer_of(reads) == training.ident
        assert reads.seconds >= 0


@pytest.mark.usefixtures("patient")
def test_without_steps_or_after_their_thread_the_main_thread_is_asked() -> None:
    point = SafePoint(Failures(), budget=0.1)
    for reads in (OwnedReads(), OwnedReads(point)):
        assert answer_of(reads) == threading.get_ident()
    stepped = threading.Thread(target=lambda: point.visit(stepping=True))
    stepped.start()
    stepped.join(30)
    assert answer_of(OwnedReads(point)) == threading.get_ident()


def test_a_thread_that_steps_too_rarely_answers_nothing() -> None:
    point = SafePoint(Failures(), budget=0.1)
    with stepping(point, lambda ended: ended.wait(30)):
        assert answer_of(OwnedReads(point)) is None


def test_the_main_thread_answers_while_it_computes() -> None:
    main = OwnedReads()
    assert main.ask(lambda: 3, 0.001) == 3, "in the main thread itself it comes at once"
    assert asked_by_another(lambda: main.ask(lambda: 1 / 0, 30), compute) == [None], "the error stays there"
    assert asked_by_another(lambda: main.ask(threading.get_ident, 30), compute) == [threading.get_ident()]
    assert main.seconds >= 0


def test_a_busy_main_thread_answers_nothing_now_and_later_questions_well() -> None:
    main = OwnedReads()
    run: list[str] = []

    def ask_late() -> Any:
        time.sleep(0.3)
        return main.ask(lambda: run.append("late"), 0.05)

    assert asked_by_another(ask_late, lambda thread: time.sleep(1)) == [None]
    assert asked_by_another(lambda: main.ask(lambda: 5, 30), compute) == [5]
    assert run == []


def test_the_exception_of_a_signal_handler_reaches_the_program() -> None:
    class Alarm(Exception):
        pass

    def ring(number: int, frame: Any) -> None:
        raise Alarm

    main = OwnedReads()

    def read() -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            pass
        return 1

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with pytest.raises(Alarm):
            asked_by_another(lambda: main.ask(read, 5), compute)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_program_under_a_debugger_is_not_asked() -> None:
    main = OwnedReads()
    before = sys.gettrace()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        return trace

    def traced() -> list[Any]:
        return asked_by_another(lambda: main.ask(lambda: 1, 5), compute)

    sys.settrace(trace)
    try:
        found = traced()
    finally:
        sys.settrace(before)
    assert found == [None]


def test_a_forked_child_answers_nothing_that_the_parent_asked() -> None:
    main = OwnedReads()
    main._question.request = Request(lambda: os._exit(9))
    child = os.fork()
    if not child:
        main.abandon()
        bool(main._question)
        os._exit(0)
    main._question.request = None
    assert os.waitpid(child, 0)[1] == 0
