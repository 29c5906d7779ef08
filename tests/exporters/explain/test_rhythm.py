"""How often the explainer looks."""

from __future__ import annotations

import pytest

from heapwatch.explain.engine import Explainer
from heapwatch.explain.evidence import Levels
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.rhythm import CALM, HURRIED, Rhythm, rhythm_of

MB = 1e6


def after(
    minutes: float,
    per_minute: float,
    *,
    start: float = 500 * MB,
    limit: float = 64e9,
    begins_at: float = 0.0,
    rounds: int = 3,
) -> Rhythm:
    """The rhythm after so many minutes, in the last of which memory grows by so many bytes a minute."""
    memory = ProcessMemory(clock=lambda: 0.0)
    memory.limit = int(limit)
    for at in range(0, round(60 * minutes) + 1, 5):
        level = start + per_minute * max(0.0, at / 60 - begins_at)
        memory.resident.add(at, level)
        memory.private.add(at, level)
    return rhythm_of(Levels(memory, 0.0, 60 * minutes), rounds)


@pytest.mark.parametrize(
    ("per_minute", "level", "rhythm"),
    [
        (0.0, 500 * MB, CALM),
        (0.2 * MB, 200 * MB, CALM),
        (0.6 * MB, 200 * MB, HURRIED),
        (10 * MB, 40e9, CALM),
        (120 * MB, 40e9, HURRIED),
    ],
)
def test_growth_that_soon_matters_is_looked_at_often(per_minute: float, level: float, rhythm: Rhythm) -> None:
    assert after(10, per_minute, start=level, limit=512e9) is rhythm


def test_growth_that_fills_the_memory_in_hours_is_looked_at_often() -> None:
    assert after(10, 10 * MB, start=40e9, limit=42e9) is HURRIED


def test_the_beginning_is_looked_at_often() -> None:
    assert after(1.5, 0.0) is HURRIED
    assert after(10, 0.0, rounds=0) is HURRIED
    assert after(10, 0.0, rounds=1) is CALM


def test_a_leak_that_begins_after_hours_ends_the_rest() -> None:
    assert after(300, 48 * MB, begins_at=300) is CALM
    assert after(303, 48 * MB, begins_at=300) is HURRIED


def test_the_explainer_rests_while_memory_stands_still_and_ends_its_rest_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, level = [0.0], [500 * MB]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)

    def read_memory() -> None:
        explainer.memory.resident.add(now[0], level[0])
        explainer.memory.private.add(now[0], level[0])

    monkeypatch.setattr(explainer, "_read_memory", read_memory)
    monkeypatch.setattr(explainer.memory, "limit", 64 * 10**9)
    ticks = 0
    while now[0] < 600:
        now[0] += explainer.tick()
        ticks += now[0] > 400
    assert ticks < 400
    assert explainer.inventory.shortest_interval == CALM.reading
    while now[0] < 680:
        now[0] += explainer.tick()
        level[0] += 1 * MB
    assert explainer.inventory.shortest_interval == HURRIED.reading
