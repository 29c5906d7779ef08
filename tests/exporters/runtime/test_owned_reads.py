"""Who is asked: the thread that steps, else the main thread."""

from __future__ import annotations

import threading

from heapwatch.runtime.failures import Failures
from heapwatch.runtime.owned_reads import OwnedReads
from heapwatch.runtime.safe_point import SafePoint


def ask_beside(reads: OwnedReads, run: threading.Thread) -> int | None:
    """The thread that answered, while `run` runs and the main thread computes."""
    answers: list[int | None] = []
    asking = threading.Thread(target=lambda: answers.append(reads.ask(threading.get_ident)), daemon=True)
    run.start()
    asking.start()
    while asking.is_alive():
        pass
    return answers[0]


def test_a_thread_that_steps_is_asked_at_its_steps() -> None:
    point = SafePoint(Failures(), budget=0.1)
    reads = OwnedReads(point)
    ended, stepped = threading.Event(), threading.Event()

    def train() -> None:
        while not ended.is_set():
            point.visit(stepping=True)
            stepped.set()

    training = threading.Thread(target=train, daemon=True)
    training.start()
    stepped.wait(30)
    try:
        assert ask_beside(reads, threading.Thread(target=int)) == training.ident
        assert reads.seconds >= 0
    finally:
        ended.set()
        training.join(30)


def test_without_steps_or_after_their_thread_the_main_thread_is_asked() -> None:
    point = SafePoint(Failures(), budget=0.1)
    for reads in (OwnedReads(), OwnedReads(point)):
        assert ask_beside(reads, threading.Thread(target=int)) == threading.get_ident()
    stepped = threading.Thread(target=lambda: point.visit(stepping=True))
    stepped.start()
    stepped.join(30)
    assert ask_beside(OwnedReads(point), threading.Thread(target=int)) == threading.get_ident()


def test_a_thread_that_steps_too_rarely_answers_nothing() -> None:
    point = SafePoint(Failures(), budget=0.1)
    ended = threading.Event()

    def train() -> None:
        point.visit(stepping=True)
        ended.wait(30)

    training = threading.Thread(target=train, daemon=True)
    training.start()
    while point.stepping_thread() is None:
        pass
    try:
        assert ask_beside(OwnedReads(point), threading.Thread(target=int)) is None
    finally:
        ended.set()
        training.join(30)
