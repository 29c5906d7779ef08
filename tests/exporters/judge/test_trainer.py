"""What the judge of a trainer calls a leak, and when."""

from __future__ import annotations

import random

import pytest

from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.trainer import Sample, TrainerJudge
from tests.support.samples import first, leaks, ramp, sample

BODIES = Component("bodies", "dynamic")
REPLAY = Component("buffer", "replay")


@pytest.mark.parametrize("size", [0.2e9, 3e9, 40e9])
def test_a_fast_leak_is_found_within_eight_minutes_whatever_the_size(size):
    assert 44 < first(ramp(size, 0.02 * size)) <= 48


def test_a_slow_leak_is_found_in_a_longer_window():
    assert 46 < first(ramp(3e9, 0.004 * 3e9)) <= 60


def test_noise_is_no_leak():
    noise = random.Random(1)
    assert first(lambda _: 3e9 * (1 + noise.gauss(0, 0.005))) is None


@pytest.mark.parametrize(
    "level",
    [
        lambda minute: 1e9 if minute < 40 else 3e9,
        lambda minute: 1e9 + 120e6 * (minute % 10),
        lambda minute: 3e9 - 2e9 * 0.92**minute,
        lambda minute: 3e9 - 10e6 * minute,
    ],
    ids=["a step", "a sawtooth", "a warm-up", "falling"],
)
def test_what_is_no_leak(level):
    assert first(level, steps=lambda minute: 400 * (minute - 4)) is None


def test_nothing_is_said_too_early():
    assert first(ramp(2e9, 60e6, since=0), cycles=1.0, steps=1e4) >= 24


def test_a_young_trainer_that_has_trained_is_judged_early():
    assert first(ramp(2e9, 60e6, since=1), steps=lambda minute: 40 * minute) <= 9
    assert first(ramp(2e9, 60e6, since=1)) <= 9, "it counts nothing"


def test_what_is_loaded_before_the_first_step_is_no_leak():
    def loading(minute):
        return 1e9 + min(60e6 * minute, 480e6)

    assert first(loading, steps=lambda minute: max(0.0, 40 * (minute - 8))) is None


def test_a_trainer_that_slows_down_leaks_by_the_step():
    """At 65 % of its speed from minute 43 on: around it the later half of six minutes is less steep."""

    def done(minute):
        return min(minute, 43) + 0.65 * max(0.0, minute - 43)

    def leak(minute):
        return 2e9 + 60e6 * max(0.0, done(minute) - 40)

    assert first(leak, steps=lambda minute: 400 * done(minute)) < first(
        leak, steps=lambda minute: 400 * minute
    )


def test_a_trainer_that_collects_and_updates_in_turns_leaks_by_the_step():
    def collected(minute):
        return sum((15 * quarter % 100) < 80 for quarter in range(round(4 * minute))) / 4

    def leak(minute):
        return 1e9 + 40e6 * collected(minute)

    assert first(leak, steps=lambda minute: 6000 * collected(minute)) <= 10
    assert first(leak, steps=lambda minute: 40 * minute) > 20


def test_pages_touched_late_are_explained_and_new_ones_are_not():
    growing = ramp(2e9, 60e6)
    assert first(growing) is not None
    assert first(growing, virtual=9e9) is None
    assert first(growing, virtual=lambda minute: growing(minute) + 7e9) is not None


def test_growth_of_what_malloc_keeps_is_a_leak_of_another_reason():
    growing, kept = ramp(2e9, 20e6), ramp(1e8, 19e6)
    samples = [sample(at / 2, {MEMORY: growing(at / 2)}, retained=kept(at / 2)) for at in range(160)]
    assert {leak.reason for found in leaks(samples) for leak in found} == {"retained"}
    levelling = [
        sample(at / 2, {MEMORY: 2e9 + min(4e8, 2e7 * at / 2)}, retained=min(4e8, 2e7 * at / 2))
        for at in range(160)
    ]
    assert leaks(levelling)[-1] == ()


def test_a_bounded_buffer_is_explained_and_a_leak_beside_it_is_not():
    """The bytes in it are subtracted by the caller: what is judged is their error of a tenth."""

    def filled(minute):
        return min(50e6 * minute, 9e9)

    assert first(lambda minute: 2e9 + 0.1 * filled(minute)) is not None
    assert first(lambda minute: 2e9 + 0.1 * filled(minute), buffer_bytes=filled) is None
    leak = ramp(2e9, 60e6)
    assert first(lambda minute: leak(minute) + 0.1 * filled(minute), buffer_bytes=filled) is not None


def test_generations_of_any_pace():
    def generation(minute):
        return minute // 100

    assert (
        300 < first(lambda minute: 5e9 + 25e9 * ((minute + 40) // 100), minutes=720, cycles=generation) <= 405
    )
    assert first(lambda minute: 5e9 + 25e9 * (minute > 125), minutes=720, cycles=generation) is None


def test_a_count_that_grows_at_every_reading_is_found_early_in_a_young_run():
    assert first(lambda minute: 4 * minute, BODIES, cycles=lambda minute: 4 * minute) <= 8


def test_a_count_that_is_not_read_is_not_judged():
    def growing(minute):
        return 100 + 8 * minute

    assert first(growing, BODIES) is not None
    assert first(growing, BODIES, reading_ages={"bodies": 900.0}) is None


def test_a_leak_is_held_for_a_quarter_of_an_hour_and_ends():
    def level(minute):
        return ramp(2e9, 60e6)(min(minute, 50))

    found = leaks(sample(at / 2, {MEMORY: level(at / 2)}) for at in range(200))
    leaking = [at / 2 for at, one in enumerate(found) if one]
    assert leaking == [*(at / 2 for at in range(round(2 * leaking[0]), round(2 * leaking[-1]) + 1))]
    assert 50 + 10 <= leaking[-1] <= 50 + 25


def test_after_a_cleanup_the_mark_begins_anew():
    """Each cleanup frees what leaked; it comes back, and is found again."""

    def level(minute):
        return 2e9 + 60e6 * (minute % 40)

    found = leaks(
        sample(at / 2, {MEMORY: level(at / 2)}, cleanups=float(at // 80), steps=20.0 * at)
        for at in range(320)
    )
    assert all(any(found[80 * cycle : 80 * cycle + 80]) for cycle in range(1, 4))
    without = leaks(
        sample(at / 2, {MEMORY: level(at / 2)}, cleanups=0.0, steps=20.0 * at) for at in range(320)
    )
    assert not any(without[180:]), "a sawtooth, without cleanups"


def test_missed_samples_are_bridged_and_a_gap_begins_anew():
    judge, growing = TrainerJudge(), ramp(2e9, 60e6, since=0)
    for at in range(120):
        if at % 5:
            judge.observe(30.0 * at, sample(at / 2, {MEMORY: growing(at / 2)}))
    assert [leak.component for leak in judge.leaks] == [MEMORY]
    assert judge.observe(30.0 * 200, sample(100, {MEMORY: growing(100)})) == ()
    assert judge.watched_minutes == 0


def test_a_clock_that_is_set_back_begins_anew():
    judge = TrainerJudge()
    judge.observe(1000.0, Sample())
    judge.observe(10.0, Sample())
    assert judge.watched_minutes == 0


def test_many_levels_and_a_long_run_are_bounded():
    judge = TrainerJudge()
    judge.observe(0.0, Sample(levels={Component("entities", str(number)): 1.0 for number in range(2000)}))
    assert len(judge._levels) == 500
    for at in range(1, 2000):
        judge.observe(30.0 * at, Sample(levels={MEMORY: 1e9}))
    assert list(judge._levels) == [MEMORY]
    assert len(judge._levels[MEMORY].gains._values) < 400


def test_a_container_past_its_bound_is_a_leak_after_some_minutes():
    found = leaks(Sample(bounded={REPLAY: (1200.0, 1000.0)}) for _ in range(12))
    assert [len(one) for one in found] == [0] * 7 + [1] * 5
    (leak,) = found[-1]
    assert (leak.reason, leak.amount, leak.bound) == ("bound", 1200, 1000)
    cut = [Sample(bounded={REPLAY: (1200.0 if at % 6 else 900.0, 1000.0)}) for at in range(60)]
    assert not any(leaks(cut)), "trimmed every so often"
    missed = [Sample(bounded={} if at == 3 else {REPLAY: (1200.0, 1000.0)}) for at in range(12)]
    assert [len(one) for one in leaks(missed)] == [0] * 8 + [1] * 4, "a reading that was missed"


@pytest.mark.parametrize("cleaned", [False, True])
def test_what_is_past_its_bound_is_known_at_once_unless_it_is_trimmed(cleaned):
    judge = TrainerJudge()
    found = []
    for at, items in enumerate([1000.0, 1100.0, 1101.0, 1200.0, 1000.0, 1200.0]):
        bounded = {REPLAY: (items, 1000.0)}
        assert not judge.observe(30.0 * at, Sample(bounded=bounded, cleanups=float(cleaned and at > 3)))
        found.append([(leak.reason, leak.amount, leak.bound) for leak in judge.past_bound(bounded)])
    past = [[("bound", items, 1000.0)] for items in (1101.0, 1200.0)]
    assert found == [[], [], *past, [], past[1] if cleaned else []]


@pytest.mark.parametrize(("items", "minutes"), [(1000.0, 2), (500.0, 10)], ids=["full", "growing"])
def test_a_buffer_that_keeps_graphs_is_a_leak(items, minutes):
    held = Sample(graphs={REPLAY: (0.9 * items, items)}, bounded={REPLAY: (items, 1000.0)})
    found = leaks(held for _ in range(30))
    assert [bool(one) for one in found] == [False] * (2 * minutes - 1) + [True] * (31 - 2 * minutes)
    assert found[-1][0].reason == "graphs"


@pytest.mark.parametrize("levels", [[900.0] * 3 + [20.0], [400.0], [0.0]])
def test_a_buffer_that_releases_graphs_in_between_or_keeps_few_holds_none(levels):
    samples = [
        Sample(graphs={REPLAY: (levels[at % len(levels)], 1000.0)}, bounded={REPLAY: (1000.0, 1000.0)})
        for at in range(60)
    ]
    assert not any(leaks(samples))


@pytest.mark.parametrize(
    ("count", "rises"),
    [
        (lambda minute: 100 + 46 * minute, True),
        (lambda minute: 100, False),
        (lambda minute: 100 + minute / 3, False),  # slower than one in a hundred a minute
        (lambda minute: 150 + 40 * (minute % 6), False),  # each episode begins anew; it has been higher
        (lambda minute: 300 - 20 * minute, False),
    ],
    ids=["rising", "level", "slowly", "sawtooth", "falling"],
)
def test_a_count_that_rose_at_each_of_the_last_readings_is_rising(count, rises):
    judge = TrainerJudge()
    leaks([sample(at / 2, {BODIES: count(at / 2)}) for at in range(16)], judge)
    assert bool(judge.rising()) == rises


def test_how_a_count_rose_before_a_cleanup_says_nothing_after_it():
    judge = TrainerJudge()
    leaks([sample(at / 2, {BODIES: 100.0 + 46 * at}, cleanups=0.0) for at in range(6)], judge)
    assert judge.rising()
    judge.observe(180.0, sample(3, {BODIES: 380.0}, cleanups=1.0))
    assert not judge.rising()
    judge.observe(210.0, sample(3.5, {BODIES: 430.0}, cleanups=1.0))
    assert judge.rising()
