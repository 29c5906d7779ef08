"""When the explainer works, how long it stops the program, and what it logs."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.schedule import (
    ADVANCE_SECONDS,
    CALM,
    HURRIED,
    SHARE,
    START_SECONDS,
    Budget,
    LogLimit,
    schedule_for,
)
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.verdict import Word

MB = 1e6


@pytest.mark.parametrize(
    ("minutes", "per_minute", "about", "schedule"),
    [
        (10, 0.0, {}, CALM),
        (10, 0.2 * MB, {"start": 200 * MB}, CALM),
        (10, 0.6 * MB, {"start": 200 * MB}, HURRIED),
        (10, 6 * MB, {"start": 200 * MB, "filling": 5.9 * MB}, CALM),  # a replay buffer fills
        (10, 6 * MB, {"start": 200 * MB, "filling": 5 * MB}, HURRIED),  # and something else grows
        (10, 10 * MB, {"start": 40e9, "limit": 42e9}, HURRIED),  # fills the memory in hours
        (1.5, 0.0, {}, HURRIED),
        (10, 0.0, {"rounds": 0}, HURRIED),
        (300, 48 * MB, {"begins_at": 300}, CALM),
        (303, 48 * MB, {"begins_at": 300}, HURRIED),
    ],
)
def test_the_beginning_and_growth_that_soon_matters_are_read_often(minutes, per_minute, about, schedule):
    given = {"start": 500 * MB, "limit": 512e9, "begins_at": 0, "rounds": 3, "filling": 0} | about
    memory = ProcessMemory(clock=lambda: 0.0)
    memory.limit = int(given["limit"])
    for at in range(0, round(60 * minutes) + 1, 5):
        level = given["start"] + per_minute * max(0.0, at / 60 - given["begins_at"])
        memory.resident.add(at, level)
        memory.private.add(at, level)
    levels = MemoryGrowth(memory, 0.0, 60 * minutes)
    assert schedule_for(levels, int(given["rounds"]), given["filling"]) is schedule


def test_the_explainer_works_seldom_until_memory_grows(monkeypatch):
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
    assert explainer.inventory.lengths.shortest_interval == CALM.reading
    while now[0] < 680:
        now[0] += explainer.tick()
        level[0] += 1 * MB
    assert explainer.inventory.lengths.shortest_interval == HURRIED.reading


def spent_after(seconds: float, *, advance_at: float = float("inf"), share: float = SHARE) -> float:
    """CPU seconds that work which never ends gets, in slices of a millisecond."""
    now = [0.0]
    budget = Budget(lambda: now[0], share)
    while now[0] < seconds:
        now[0] += 0.1
        if now[0] >= advance_at:
            budget.advance()
        if budget.allows():
            budget.charge(0.001)
    return budget.spent


@pytest.mark.parametrize("seconds", [10.0, 60.0, 300.0, 3600.0])
def test_any_run_costs_its_share_and_a_little_ahead(seconds):
    assert spent_after(seconds) <= START_SECONDS + SHARE * seconds + 0.001
    assert spent_after(seconds) <= 0.01 * seconds


def test_an_advance_is_paid_back_within_the_hour():
    assert spent_after(120.0, advance_at=60.0) > START_SECONDS + SHARE * 120 + ADVANCE_SECONDS / 2
    assert spent_after(3700.0, advance_at=60.0) <= SHARE * 3700 + 0.001


LEAK = Finding("container", "trainer.history", "list", 10, 10, 1.0, 1.0, 1.0, is_leak=True)
OTHER = replace(LEAK, path="trainer.other")


def explanation(verdict: Word, *findings: Finding) -> Explanation:
    return Explanation(verdict, 100.0, 1.0, 1.0, findings)


def logged(limit: LogLimit, found: Explanation, seconds: range) -> list[int]:
    return [now for now in seconds if limit.line(found, now)]


def test_a_verdict_is_said_once_it_has_held_for_a_minute_and_once_an_hour():
    assert logged(LogLimit(), explanation("leak", LEAK), range(0, 7000, 5)) == [60, 3660]


def test_verdicts_that_change_all_the_time_are_not_said():
    limit = LogLimit()
    found = [explanation("warm-up"), explanation("leak", LEAK), explanation("healthy")]
    assert not any(limit.line(found[now // 5 % 3], now) for now in range(0, 3600, 5))


@pytest.mark.parametrize("word", ["too early", "healthy", "warm-up"])
def test_that_nothing_leaks_or_is_known_is_not_said(word):
    assert not logged(LogLimit(), explanation(word), range(0, 7200, 5))


def test_a_verdict_that_proves_wrong_is_withdrawn_once():
    limit = LogLimit()
    assert logged(limit, explanation("leak", LEAK), range(0, 300, 5)) == [60]
    lines = [limit.line(explanation("warm-up"), now) for now in range(300, 7200, 5)]
    (taken_back,) = filter(None, lines)
    assert taken_back.level == logging.WARNING
    assert taken_back.text.startswith("warm-up: what was said before is taken back. No leak.")


def test_what_someone_has_to_act_on_is_a_warning():
    full = Finding("buffer", "replay", "deque", 10, 10, 1.0, 1.0, 1.0, 1000, fits=False)
    lines = []
    for found in (explanation("leak", LEAK), explanation("will not fit", full), explanation("growing", LEAK)):
        limit = LogLimit()
        lines.append(next(line for now in (0, 60) if (line := limit.line(found, now))))
    assert [line.level for line in lines] == [logging.WARNING, logging.WARNING, logging.INFO]
    assert [line.text.partition(":")[0] for line in lines] == ["leak", "will not fit", "growing"]
