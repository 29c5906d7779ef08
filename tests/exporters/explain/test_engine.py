"""How the explainer divides its time."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import replace

import pytest

from heapwatch.explain import evaluator
from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import Explanation, Finding, message
from heapwatch.explain.places import KnownContainer, Place
from heapwatch.measure.introspection.roots import Root
from heapwatch.text.numbers import size


class Time:
    now = spent = 0.0


@pytest.fixture
def time() -> Time:
    """The clock of the explainer, and the CPU seconds that its thread has taken."""
    return Time()


@pytest.fixture
def explainer(time: Time, monkeypatch: pytest.MonkeyPatch) -> Explainer:
    """One that judges nothing, and reads no more of the memory than what is resident."""
    made = Explainer(clock=lambda: time.now, spent=lambda: time.spent)
    monkeypatch.setattr(made._evaluations, "run", lambda: None)
    monkeypatch.setattr(made.memory, "read_parts", lambda: None)
    return made


@pytest.fixture
def used_up(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be spent, as for minutes on a busy machine."""
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)


def tick(explainer: Explainer, time: Time, until: float, every: float | None = None) -> None:
    """Tick until then: after the pause that each tick returns, or `every` so many seconds."""
    while time.now < until:
        pause = explainer.tick()
        time.now += every or pause or 0.02


@pytest.mark.usefixtures("used_up")
def test_objects_that_are_not_collected_are_counted_though_nothing_may_be_spent(explainer, time, monkeypatch):
    """A judgement every ten seconds or more is too rare to tell a rise from noise."""
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    monkeypatch.setattr(gc, "get_count", lambda: (round(1000 + 10 * time.now), 0, 0))
    tick(explainer, time, 60, every=1.0)
    growth = explainer.evaluator.search.uncollected.counts.growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(10.0, rel=0.1)


def test_memory_is_read_with_what_the_containers_keep_in_a_store_elsewhere(explainer):
    """Not the sum: one container may be in another."""
    for name, items in (("outer", 100), ("inner", 80), ("private", 900)):
        known = explainer.inventory.known[name] = KnownContainer(name, "list", "list")
        known.items.add(0.0, items)
        known.held.add(0.0, 2e6)
        known.weighed_items, known.shared_share = 1.0, 0.5 * (name != "private")
    explainer._read_memory()
    assert explainer.memory.referenced == 100e6


@pytest.mark.usefixtures("used_up")
def test_what_has_a_name_is_read_with_memory_though_nothing_may_be_spent(explainer, time):
    """A leak went on without a reading."""
    held = [0]
    known = explainer.inventory.known["held"] = KnownContainer("held", "list", "list")
    known.places = [Place(None, None, Root("held", "held", lambda: held), 1.0)]
    found = Finding("container", "held", "list", 1, 1000, 60.0, 500.0, 1.0)
    explainer.explanations.add(replace(explainer.latest, findings=(found,)), 0.0)
    for time.now in range(60):
        held.append(0)
        explainer.tick()
    assert known.items.growth().rising
    assert known.items.last in range(50, 62)


def test_a_verdict_is_renewed_each_minute_though_nothing_may_be_spent(explainer, time, monkeypatch):
    judged: list[float] = []
    monkeypatch.setattr(explainer._evaluations, "run", lambda: judged.append(time.now))
    tick(explainer, time, 60, every=1.0)
    judged.clear()
    monkeypatch.setattr(explainer._budget, "allows", lambda: False)
    tick(explainer, time, 660, every=1.0)
    assert len(judged) in range(9, 20)


def test_memory_is_read_often_enough_for_the_first_verdict(explainer, time, monkeypatch):
    """A rate needs five readings, of the thirty seconds before it. Each of these takes 4 ms."""

    def read_memory() -> None:
        time.spent += 0.004
        explainer.memory.own.add(time.now, time.now)

    monkeypatch.setattr(explainer, "_read_memory", read_memory)
    tick(explainer, time, 40)
    assert explainer.memory.own.growth(10).rising


def test_nothing_is_searched_for_where_the_interpreter_has_no_lock(monkeypatch, caplog):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    explainer = Explainer()
    explainer.start()
    explainer.stop()
    assert not explainer.enabled
    assert explainer.inventory.rounds == 0
    assert "without its global lock" in caplog.text


def test_an_object_that_cannot_be_read_does_not_delay_an_explanation(monkeypatch):
    explainer, released = Explainer(), threading.Event()
    monkeypatch.setattr(explainer.inventory.lengths, "read", lambda seconds: released.wait(60))
    explainer.start()
    try:
        assert explainer.explain_now(0.2) is explainer.latest
    finally:
        released.set()
        explainer.stop()


def test_an_explanation_that_fails_leaves_the_one_before(monkeypatch, capsys):
    explainer = Explainer()
    monkeypatch.setattr(explainer.inventory.lengths, "read", lambda seconds: 1 / 0)
    explainer.start()
    before = explainer.latest
    assert explainer.explain_now(60) is before
    explainer.stop()
    assert capsys.readouterr().err == ""


def test_an_explanation_that_is_asked_for_is_new():
    explainer = Explainer()
    explainer.start()
    before = explainer.latest
    assert explainer.explain_now(60) is not before
    explainer.stop()
    assert explainer.explain_now(60) is explainer.latest  # nothing answers any more


@pytest.mark.parametrize(
    ("judged", "stays"),
    [
        ([(70, 400e6, "leak"), (75, 500e6, "leak"), (78, 90e6, "healthy")], 75),
        ([(75, 500e6, "leak"), (78, 90e6, "leak")], 75),
        ([(50, 500e6, "leak"), (65, 80e6, "healthy"), (80, 80e6, "healthy")], 80),
        ([(75, 500e6, "growing"), (78, 500e6, "filling")], 78),
        ([(75, 500e6, "leak"), (78, 500e6, "leak")], 78),
    ],
    ids=["freed as it ended", "and still a leak", "freed before the end", "found to be harmless", "kept"],
)
def test_what_a_program_frees_as_it_ends_does_not_hide_what_it_held(monkeypatch, time, judged, stays):
    explainer = Explainer(clock=lambda: time.now)
    verdicts = {at: verdict for at, _, verdict in judged}
    monkeypatch.setattr(
        evaluator, "explain", lambda *_, **__: Explanation(verdicts[time.now], time.now, 0.0, 0.0)
    )
    for time.now, level, _ in judged:
        explainer.memory.resident.add(time.now, level)
        explainer._evaluate()
    assert explainer.conclude().seconds == stays
    explainer._evaluate()
    assert explainer.latest.seconds == stays


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.0, "Too early to tell after 1 s. It ended; a verdict needs about 40 s."),
        (60.0, "Too early to tell after 60 s. It ended; only a longer run can tell."),
    ],
)
def test_an_ended_program_is_promised_nothing_and_blamed_for_no_nameless_growth(
    monkeypatch, time, seconds, said
):
    time.now, explainer = seconds, Explainer(clock=lambda: time.now)
    unnamed = Finding("native", None, "memory that no container accounts for", bytes_per_minute=8e5)
    judged = Explanation("too early", seconds, 8e5, 0.0, (unnamed,), "Whether it lasts is known in 24 min.")
    monkeypatch.setattr(evaluator, "explain", lambda *_, **__: judged)
    explainer._evaluate()
    assert message(explainer.conclude()) == said


@pytest.fixture
def grown(time, monkeypatch):
    """An explainer that has judged two minutes in which memory grew by 1.8 GB a minute."""
    grown = Explainer(clock=lambda: time.now)
    grown.inventory.rounds = 1
    monkeypatch.setattr(grown.memory, "resident_now", lambda: grown.memory.resident.last)
    hold(grown, time, 120, 30e6)
    assert grown.latest.growth_bytes_per_minute == pytest.approx(1.8e9, rel=0.1)
    return grown


def hold(explainer, time, seconds, per_second, level=300e6):
    for second in range(seconds):
        time.now += 1
        explainer.memory.resident.add(time.now, level + second * per_second)
        if second % 5 == 4:
            explainer._evaluate()


def test_after_a_cleanup_that_ended_the_growth_nothing_is_said_to_grow(grown, time):
    grown.cleaned("emergency", 3.6e9, 300e6)
    assert message(grown.conclude()).startswith("Too early to tell")
    grown._stopped.clear()
    hold(grown, time, 60, 0.0)
    said = message(grown.conclude())
    assert grown.latest.growth_bytes_per_minute == 0
    assert grown.latest.verdict == "healthy"
    assert "An emergency cleanup freed 3.6 GB 60 s ago. Until then memory grew by 1.8 GB/min" in said
    assert said.endswith("Since then memory has not grown.")


@pytest.mark.parametrize("per_second", [10e6, 150e6])
def test_after_a_cleanup_only_growth_since_then_counts(grown, time, per_second):
    grown.cleaned("emergency", 3.6e9, 300e6)
    hold(grown, time, 90, per_second)
    assert grown.latest.growth_bytes_per_minute == pytest.approx(60 * per_second, rel=0.1)
    assert f"Since then memory has grown by {size(89 * per_second)}." in message(grown.conclude())


def test_a_cleanup_that_gave_back_little_changes_nothing(grown):
    before = grown.latest
    grown.cleaned("emergency", 4.9e6, 100e6)
    grown.cleaned("emergency", 0.02 * 3.9e9, 0.98 * 3.9e9)
    assert grown.latest is before
    assert grown.conclude().after_cleanup == ""


def test_an_evaluation_that_a_cleanup_overtakes_is_dropped(grown, monkeypatch):
    def explained(*given, **options):
        grown.cleaned("emergency", 3.6e9, 300e6)
        return Explanation("leak", 120.0, 1.8e9, 0.0)

    monkeypatch.setattr(evaluator, "explain", explained)
    grown._evaluate()
    assert grown.conclude().verdict == "too early"


def test_walks_get_rare_while_they_find_nothing_new_and_keep_their_pace_for_weeks(
    explainer, time, monkeypatch
):
    """Walks that end at once."""
    inventory = explainer.inventory

    def discover(seconds: float) -> bool:
        inventory.rounds += 1
        return True

    def rounds_in(seconds: float) -> int:
        before = inventory.rounds
        tick(explainer, time, time.now + seconds, every=0.5)
        return inventory.rounds - before

    monkeypatch.setattr(inventory, "discover", discover)
    monkeypatch.setattr(explainer, "_may_search", lambda: False)
    rounds_in(120)
    assert rounds_in(600) in (9, 10)
    inventory.newest_round = inventory.rounds
    assert rounds_in(120) >= 4
    explainer.evaluator.needs_search = True
    rounds_in(60)
    assert rounds_in(600) in range(36, 41)
    inventory.rounds = 50_000
    assert rounds_in(600) in range(36, 41)
