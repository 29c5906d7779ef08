"""Items of a container get the line that makes them; the program is left as it was."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from heapwatch import lifecycle
from heapwatch.explain import tracing as subject
from heapwatch.explain.sites import Site
from heapwatch.explain.tracing import FRAMES, SHARE, Tracer, made_at

items: list[object] = []


def line_of(site: Site | None) -> str:
    """The text of a line of this file."""
    assert site is not None
    assert site.file == __file__
    return Path(__file__).read_text().splitlines()[site.line - 1]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that goes on while it is slept."""
    now = [0.0]
    monkeypatch.setattr(subject.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def filling() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Starts a thread that makes item after item."""
    stop = threading.Event()
    threads = []

    def fill(make: Callable[[], object]) -> None:
        while not stop.wait(0.005):
            items.append(make())

    def start(make: Callable[[], object]) -> None:
        threads.append(threading.Thread(target=fill, args=[make]))
        threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join()
    items.clear()


def newest() -> list[object]:
    return items[-3:]


def test_the_line_that_makes_the_items_is_found(filling):
    filling(lambda: {"observation": bytes(2000)})
    assert "bytes(2000)" in line_of(Tracer().trace("items", lambda: len(items), newest))
    assert not tracemalloc.is_tracing()


def test_items_that_are_rare_are_traced_when_the_next_is_due(now):
    """A second at any other time would miss what comes every four."""
    now[0] = 2.3
    made: list[object] = []
    lengths: list[float] = []

    def length() -> float:
        if tracemalloc.is_tracing():
            lengths.append(now[0])
        if now[0] >= 8.0:
            made.append(bytearray(2000))
        return now[0] // 4.0

    site = Tracer(clock=lambda: now[0]).trace("items", length, lambda: made[-1:], interval=4.0)
    assert 7.4 < lengths[0] < 8.0
    assert site is not None
    assert now[0] < 8.1


def test_a_pause_follows_each_moment_and_a_path_is_tried_a_few_times_only(now):
    tracer = Tracer(clock=lambda: now[0])
    for _ in range(4):
        assert tracer.may_trace("items")
        traced = tracer.seconds
        tracer.trace("items", lambda: 5.0, newest)
        assert not tracer.may_trace("items")
        now[0] += (tracer.seconds - traced) / SHARE + 1
    assert not tracer.may_trace("items")
    assert tracer.may_trace("others")


def test_a_program_that_traces_by_itself_is_left_alone():
    tracemalloc.start()
    try:
        assert not Tracer().may_trace("items")
    finally:
        tracemalloc.stop()


def test_a_child_that_is_forked_in_a_period_is_not_traced():
    watch = lifecycle.begin_unserved("forking")
    try:
        tracer = watch.exporter.explainer.tracer
        period = threading.Thread(target=tracer.trace, args=("here", lambda: 1.0, list))
        period.start()
        while not tracemalloc.is_tracing():
            time.sleep(0.001)
        child = os.fork()
        if not child:
            os._exit(tracemalloc.is_tracing())
        assert os.waitpid(child, 0)[1] == 0
        period.join(30)
        assert not tracemalloc.is_tracing()
    finally:
        lifecycle.end(watch)


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("HEAPWATCH_TRACE", "0")
    assert not Tracer().may_trace("items")


class Base:
    def __init__(self) -> None:
        self.name = "x" * 100


class Policy(Base):
    def __init__(self) -> None:
        super().__init__()
        self.weights = bytes(4000)


def made_policy() -> Policy:
    return Policy()


def made_tensors() -> list[torch.Tensor]:
    return [torch.zeros(3) for _ in range(50)]


def made_tensor_among_others() -> torch.Tensor:
    items.extend(torch.ones(3) for _ in range(50))
    return torch.zeros(3)


def made_step() -> dict[str, Any]:
    observation = bytes(5000)
    return {"observation": observation, "reward": 1.0}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (made_policy, "return Policy()"),
        (made_step, "observation = bytes(5000)"),
        (made_tensors, "return [torch.zeros(3)"),
        (made_tensor_among_others, "return torch.zeros(3)"),
    ],
)
def test_an_instance_is_made_where_it_is_constructed(make, line):
    unused: list[dict[str, int]] = [
        {} for _ in range(1000)
    ]  # none is taken from the interpreter's spare ones
    tracemalloc.start(FRAMES)
    try:
        site = made_at([make()])
    finally:
        tracemalloc.stop()
        items.clear()
    assert len(unused) == 1000
    assert line in line_of(site)
