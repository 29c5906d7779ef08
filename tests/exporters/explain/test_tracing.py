from __future__ import annotations

import copy
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from heapwatch.explain import tracing as subject
from heapwatch.explain.sites import Site
from heapwatch.explain.tracing import FRAMES, LONGEST_SECONDS, SHARE, Tracer, made_at

items: list[object] = []


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


def test_the_line_that_makes_the_items_is_found(filling: Any) -> None:
    filling(lambda: {"observation": bytes(2000)})
    site = Tracer().trace("items", lambda: len(items), newest)
    assert site is not None
    assert site.file == __file__
    assert "bytes(2000)" in Path(__file__).read_text().splitlines()[site.line - 1]
    assert not tracemalloc.is_tracing()


@pytest.mark.slow
def test_items_that_a_library_makes_are_found_with_more_frames(filling: Any) -> None:
    nested: list[Any] = [{}]
    for _ in range(FRAMES):
        nested = [nested]

    def innermost(made: list[Any]) -> Any:
        while type(made) is list:
            made = made[0]
        return made

    now = [0.0]
    tracer = Tracer(clock=lambda: now[0])

    def length() -> float:
        now[0] += 0.001
        return len(items)

    def trace() -> Site | None:
        return tracer.trace("items", length, newest)

    filling(lambda: innermost(copy.deepcopy(nested)))
    assert trace() is None
    shallow = tracer.seconds
    site = trace()
    assert site is not None
    assert "deepcopy(" in Path(__file__).read_text().splitlines()[site.line - 1]
    now[0] += 1.5 * (tracer.seconds - shallow) / SHARE
    assert not tracer.may_trace("items"), "the pause is longer, as more frames cost more"


def test_a_moment_in_which_nothing_grows_says_nothing_and_ends() -> None:
    tracer = Tracer()
    assert tracer.trace("items", lambda: 5.0, newest, interval=0.01) is None
    assert not tracemalloc.is_tracing()
    assert 0 < tracer.seconds < LONGEST_SECONDS


def test_items_that_are_rare_are_traced_when_the_next_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second at any other time would miss what comes every four."""
    now, lengths = [2.3], []

    def passes(seconds: float) -> None:
        now[0] += seconds

    def length() -> float:
        if tracemalloc.is_tracing():
            lengths.append(now[0])
        if now[0] >= 8.0:
            made.append(bytearray(2000))
        return now[0] // 4.0

    made: list[object] = []
    monkeypatch.setattr(subject.time, "sleep", passes)
    site = Tracer(clock=lambda: now[0]).trace("items", length, lambda: made[-1:], interval=4.0)
    assert 7.4 < lengths[0] < 8.0
    assert site is not None
    assert now[0] < 8.1


def test_later_periods_are_long_for_items_that_come_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def passes(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(subject.time, "sleep", passes)
    tracer = Tracer(clock=lambda: now[0])
    tracer.trace("items", lambda: 5.0, newest, interval=0.05)
    assert tracer.seconds < 0.2
    tracer.trace("items", lambda: 5.0, newest, interval=0.05)
    assert tracer.seconds > LONGEST_SECONDS


def test_a_pause_follows_each_moment() -> None:
    now = [0.0]
    tracer = Tracer(clock=lambda: now[0])

    def passing() -> float:
        now[0] += 0.5
        return 5.0

    assert tracer.may_trace("items")
    tracer.trace("items", passing, newest)
    traced = tracer.seconds
    assert not tracer.may_trace("items")
    now[0] += traced / SHARE + 1
    assert tracer.may_trace("items")


def test_a_path_is_tried_a_few_times_only() -> None:
    now = [0.0]
    tracer = Tracer(clock=lambda: now[0])
    tries = 0
    while tracer.may_trace("items"):
        tracer.trace("items", lambda: now.__setitem__(0, now[0] + 1) or 5.0, newest)
        now[0] += 10_000
        tries += 1
    assert tries == 4
    assert tracer.may_trace("others")


def test_a_program_that_traces_by_itself_is_left_alone() -> None:
    tracemalloc.start()
    try:
        assert not Tracer().may_trace("items")
    finally:
        tracemalloc.stop()


def test_a_program_that_begins_to_trace_during_the_wait_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def passes(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 1.0:
            tracemalloc.start()

    monkeypatch.setattr(subject.time, "sleep", passes)
    tracer = Tracer(clock=lambda: now[0])
    try:
        assert tracer.trace("items", lambda: now[0] // 4.0, newest, interval=4.0) is None
        assert tracemalloc.is_tracing()
        assert tracer.seconds == 0.0
    finally:
        tracemalloc.stop()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_instance_is_made_where_it_is_constructed_and_a_container_where_its_bytes_are(
    make: Callable[[], object], line: str
) -> None:
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
    assert site is not None
    assert line in Path(__file__).read_text().splitlines()[site.line - 1]


def test_of_items_of_several_sorts_the_line_that_makes_the_heaviest_is_reported() -> None:
    """A queue of events gets histograms, and then a number, in each step."""
    tracemalloc.start(FRAMES)
    try:
        heavy = [(step, bytes(4000)) for step in range(1000, 1002)]
        site = made_at([*heavy, (1002, str(time.time()))])
    finally:
        tracemalloc.stop()
    assert site is not None
    assert "bytes(4000)" in Path(__file__).read_text().splitlines()[site.line - 1]
