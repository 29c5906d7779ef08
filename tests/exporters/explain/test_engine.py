"""How the explainer divides its time."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import replace

import pytest

from heapwatch.analysis.verdict import Word
from heapwatch.explain import engine
from heapwatch.explain.engine import Explainer
from heapwatch.explain.evidence import Levels
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.places import KnownContainer, Place
from heapwatch.measure.introspection.roots import Root


def test_a_search_that_took_long_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, spent, searches = [0.0], [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: spent[0])

    def search(elsewhere: set[int]) -> list[object]:
        searches.append(now[0])
        spent[0] += 0.03
        return []

    monkeypatch.setattr(explainer.census, "search", search)
    monkeypatch.setattr(explainer.census, "count", lambda: None)
    monkeypatch.setattr(explainer, "_searching", True)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    while now[0] < 80:
        explainer.tick()
        now[0] += 1.0
    assert searches == [1.0, pytest.approx(46.0, abs=1.0)]


def test_garbage_is_searched_for_in_place_of_types_while_the_collector_is_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, searches = [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    found = Finding("type", None, "cycles", 100, 5000, 10.0, 500.0, 0.0)
    monkeypatch.setattr(explainer.census, "search", lambda elsewhere: [])
    monkeypatch.setattr(explainer.census, "count", lambda: searches.append(-1.0))
    monkeypatch.setattr(explainer.uncollected, "examine", lambda: searches.append(now[0]))
    monkeypatch.setattr(explainer._describer, "describe_garbage", lambda uncollected, levels: [found])
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    for now[0] in (60.0, 61.0, 64.0, 70.0, 71.0):
        explainer._search(now[0])
        assert explainer._types(Levels(explainer.memory, 0.0, now[0])) == [found]
    assert searches == [61.0, 71.0]


def test_types_are_not_counted_while_the_collector_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    now, counts = [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer, "_searching", True)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    monkeypatch.setattr(explainer.census, "count", lambda: counts.append(now[0]))
    # These would leave the collector off.
    monkeypatch.setattr(explainer.census, "search", lambda elsewhere: [])
    monkeypatch.setattr(explainer.uncollected, "examine", lambda: None)

    def tick_for_a_minute() -> None:
        until = now[0] + 60
        while now[0] < until:
            now[0] += 0.5
            explainer.tick()

    monkeypatch.setattr(gc, "isenabled", lambda: False)
    tick_for_a_minute()
    assert not counts
    monkeypatch.setattr(gc, "isenabled", lambda: True)
    tick_for_a_minute()
    assert counts


def test_objects_that_are_not_collected_are_counted_though_nothing_may_be_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judgement every ten seconds or more is too rare to tell a rise from noise."""
    now = [0.0]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    monkeypatch.setattr(gc, "get_count", lambda: (round(1000 + 10 * now[0]), 0, 0))
    while now[0] < 60:
        now[0] += 1.0
        explainer.tick()
    growth = explainer.uncollected.counts.growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(10.0, rel=0.1)


def test_what_has_a_name_is_read_with_memory_though_nothing_may_be_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine the budget is used up for minutes, in which a leak went on without a reading."""
    now, held = [0.0], [0]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)
    known = explainer.inventory.known["held"] = KnownContainer("held", "list", "list")
    known.places = [Place(None, None, Root("held", "held", lambda: held), 1.0)]
    found = Finding("container", "held", "list", 1, 1000, 60.0, 500.0, 1.0)
    explainer.latest = replace(explainer.latest, findings=(found,))
    for now[0] in range(60):
        held.append(0)
        explainer.tick()
    assert known.items.growth().rising
    assert known.items.last in range(50, 62)


def test_a_verdict_is_renewed_each_minute_though_nothing_may_be_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, judged = [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer, "_judge", lambda: judged.append(now[0]))
    for now[0] in range(60):
        explainer.tick()
    judged.clear()
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)
    for now[0] in range(60, 660):
        explainer.tick()
    assert len(judged) in range(9, 20)


def test_a_search_begins_at_once_when_growth_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    now, done = [100.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer.census, "count", lambda: done.append("count"))
    monkeypatch.setattr(explainer.census, "search", lambda elsewhere: done.append("search"))
    monkeypatch.setattr(explainer.census, "inspect", lambda *types: done.append("inspect"))
    monkeypatch.setattr(explainer.census, "is_inspected", lambda *types: False)
    steps = [explainer._search(now[0]) for _ in range(4)]
    assert done == ["count", "search", "inspect"]
    assert steps == ["census", "search", "inspect", ""]


def test_time_in_advance_is_for_the_first_walk_and_then_for_what_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, spent, searches = [0.0], [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: spent[0])

    def discover(seconds: float) -> bool:
        spent[0] += 0.001
        is_complete = spent[0] > 0.2
        explainer.inventory.rounds += is_complete
        return is_complete

    monkeypatch.setattr(explainer.inventory, "discover", discover)
    monkeypatch.setattr(explainer, "_read_memory", lambda: None)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    monkeypatch.setattr(explainer, "_search", lambda at: searches.append(at) or "")
    explainer._searching = True
    explainer._budget.advance()
    while not explainer.inventory.rounds:
        now[0] += explainer.tick() or 0.02
    assert not searches
    assert min(explainer._due[what] for what in ("census", "search", "inspect")) >= now[0] + 9
    explainer.tick()
    assert searches


def test_reading_memory_leaves_time_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine with many processes it takes a millisecond, once a second."""
    now, spent, read = [0.0], [0.0], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: spent[0])

    def read_memory() -> None:
        spent[0] += 0.0012
        read.append(now[0])

    monkeypatch.setattr(explainer, "_read_memory", read_memory)
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    while now[0] < 600:
        now[0] += explainer.tick()
    assert 0.0012 * len(read) / 600 <= 0.0004


def test_waking_up_does_not_use_up_what_may_be_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the first walk of a large program takes minutes, and a wake-up 0.1 ms."""
    now, spent, judged = [0.0], [0.0], []

    def costs(seconds: float, answer: object = None) -> object:
        spent[0] += seconds
        return answer

    def spent_so_far() -> float:
        spent[0] += 1e-4
        return spent[0]

    explainer = Explainer(clock=lambda: now[0], spent=spent_so_far)
    monkeypatch.setattr(explainer, "_read_memory", lambda: costs(8e-4))
    monkeypatch.setattr(explainer, "_judge", lambda: judged.append(now[0]) or costs(5e-3))
    monkeypatch.setattr(explainer, "_weigh", lambda most: costs(3e-3))
    monkeypatch.setattr(explainer.inventory.lengths, "read", lambda seconds: costs(1e-3, True))
    monkeypatch.setattr(explainer.inventory, "discover", lambda seconds: costs(1e-3, False))
    while now[0] < 600:
        now[0] += explainer.tick() or 0.02
    assert len([time for time in judged if time > 300]) >= 10
    assert spent[0] < 1.1 * (0.15 + 0.002 * 600)


def rounds_in(explainer: Explainer, now: list[float], seconds: float) -> int:
    """How many walks end in this time, in ticks of half a second."""
    before, until = explainer.inventory.rounds, now[0] + seconds
    while now[0] < until:
        now[0] += 0.5
        explainer.tick()
    return explainer.inventory.rounds - before


@pytest.fixture
def walking(monkeypatch: pytest.MonkeyPatch) -> tuple[Explainer, list[float]]:
    """An explainer whose walks end at once and whose judgements find nothing, with its clock."""
    now = [0.0]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)

    def discover(seconds: float) -> bool:
        explainer.inventory.rounds += 1
        return True

    monkeypatch.setattr(explainer.inventory, "discover", discover)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    return explainer, now


def test_walks_get_rare_while_they_find_nothing_new(walking: tuple[Explainer, list[float]]) -> None:
    explainer, now = walking
    rounds_in(explainer, now, 120)
    assert rounds_in(explainer, now, 600) in (9, 10)
    explainer.inventory.newest_round = explainer.inventory.rounds
    assert rounds_in(explainer, now, 120) >= 4
    explainer._searching = True
    rounds_in(explainer, now, 60)
    assert rounds_in(explainer, now, 600) in range(36, 41)


def test_walks_keep_their_pace_for_weeks(walking: tuple[Explainer, list[float]]) -> None:
    explainer, now = walking
    explainer.inventory.rounds = 50_000
    explainer._searching = True
    rounds_in(explainer, now, 60)
    assert rounds_in(explainer, now, 600) in range(36, 41)


@pytest.mark.parametrize(("cost", "least"), [(0.001, 15), (0.3, 3)])
def test_the_time_for_a_walk_is_saved_up(monkeypatch: pytest.MonkeyPatch, cost: float, least: int) -> None:
    """A walk that crawls takes minutes, and nothing else is read as often meanwhile."""
    now, spent, began, ended = [0.0], [0.0], [], []
    explainer = Explainer(clock=lambda: now[0], spent=lambda: spent[0])
    left = [0.0]

    def discover(seconds: float) -> bool:
        if left[0] <= 0:
            left[0] = cost
            began.append(now[0])
        spent[0] += min(left[0], 0.001)
        left[0] -= 0.001
        if left[0] > 0:
            return False
        ended.append(now[0])
        explainer.inventory.rounds += 1
        return True

    monkeypatch.setattr(explainer.inventory, "discover", discover)
    monkeypatch.setattr(explainer, "_judge", lambda: None)
    explainer._searching = True
    while now[0] < 1200:
        now[0] += explainer.tick() or 0.02
    later = list(zip(began[1:], ended[1:], strict=False))
    assert len(later) >= least
    assert all(end - begin < 80 for begin, end in later)


def test_a_slice_that_fails_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now, spent = [0.0], [0.0]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: spent[0])

    def fail(_: float) -> str:
        spent[0] += 0.25
        raise RuntimeError

    monkeypatch.setattr(explainer, "_slice", fail)
    with pytest.raises(RuntimeError):
        explainer.tick()
    assert explainer._budget.spent == 0.25


def test_nothing_is_searched_for_where_the_interpreter_has_no_lock(monkeypatch, caplog):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    explainer = Explainer()
    explainer.start()
    assert explainer._thread is None
    assert "without its global lock" in caplog.text


def test_an_object_that_cannot_be_read_does_not_delay_an_explanation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explainer, released = Explainer(), threading.Event()
    monkeypatch.setattr(explainer.inventory.lengths, "read", lambda seconds: released.wait(60))
    explainer.start()
    try:
        assert explainer.explain_now(0.2) is explainer.latest
    finally:
        released.set()
        explainer.stop()


def test_an_explanation_that_fails_leaves_the_one_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explainer = Explainer()
    monkeypatch.setattr(explainer.inventory.lengths, "read", lambda seconds: 1 / 0)
    explainer.start()
    before = explainer.latest
    assert explainer.explain_now(60) is before
    explainer.stop()
    assert capsys.readouterr().err == ""


def test_an_explanation_that_is_asked_for_is_new() -> None:
    explainer = Explainer()
    explainer.start()
    before = explainer.latest
    assert explainer.explain_now(60) is not before
    explainer.stop()
    assert explainer.explain_now(60) is explainer.latest  # nothing answers any more


@pytest.mark.parametrize(
    ("evaluations", "concluded"),
    [
        ([(70, 400e6, "leak"), (75, 500e6, "leak"), (78, 90e6, "healthy")], 75),  # freed as it ended
        ([(75, 500e6, "leak"), (78, 90e6, "leak")], 75),  # the rate of what is freed is none
        ([(10, 90e6, "leak"), (75, 80e6, "healthy")], 75),  # freed long before the end
        ([(75, 500e6, "growing"), (78, 500e6, "filling")], 78),  # found to be harmless
        ([(30, 500e6, "too early"), (75, 500e6, "healthy"), (78, 90e6, "healthy")], 75),
        ([(75, 500e6, "too early"), (78, 90e6, "leak")], 78),
        ([(78, 500e6, "leak")], 78),
    ],
)
def test_what_a_program_frees_as_it_ends_does_not_hide_what_it_held(
    monkeypatch: pytest.MonkeyPatch, evaluations: list[tuple[float, float, Word]], concluded: float
) -> None:
    now, verdict = [0.0], ["healthy"]
    explainer = Explainer(clock=lambda: now[0])
    monkeypatch.setattr(engine, "explain", lambda *_, **__: Explanation(verdict[0], now[0], 0.0, 0.0))
    assert explainer.conclude() is explainer.latest
    for now[0], held, verdict[0] in evaluations:
        explainer.memory.resident.add(now[0], held)
        explainer._judge()
    assert explainer.conclude().seconds == concluded


def test_objects_that_are_frozen_again_and_again_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer.census.pause_limit, "allowed", 0.0)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 100_000 + 50 * int(now[0]))
    for now[0] in range(0, 200, 10):
        explainer.census.count()
        explainer.memory.private.add(now[0], 1e9 + 1e6 * now[0])
    (found,) = explainer._types(Levels(explainer.memory, 0.0, now[0]))
    assert "gc.freeze()" in found.type
    assert found.items_per_minute == pytest.approx(3000, rel=0.1)
    assert found.inferred

    explainer = Explainer(clock=lambda: now[0], spent=lambda: 0.0)
    monkeypatch.setattr(explainer.census.pause_limit, "allowed", 0.0)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 100_000)
    for now[0] in range(0, 200, 10):
        explainer.census.count()
    assert explainer._types(Levels(explainer.memory, 0.0, now[0])) == []
