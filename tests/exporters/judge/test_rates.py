import random

import pytest

from heapwatch.judge.rates import CycleRates, GrowthRates


def history(values, *, every=15.0, **options):
    kept = GrowthRates(**options)
    for index, value in enumerate(values):
        kept.observe(index * every, {"memory": value})
    return kept


def test_rate_is_per_minute_whatever_the_interval():
    for every in (1.0, 7.0, 15.0, 60.0):
        levels = [1e9 + 20e6 * index * every / 60 for index in range(200)]
        assert history(levels, every=every).per_minute("memory") == pytest.approx(20e6)


def test_noise_of_a_sawtooth_is_not_growth():
    noise = random.Random(1)
    levels = [1e9 + noise.uniform(-90e6, 90e6) for _ in range(40)]
    assert abs(history(levels).per_minute("memory")) < 10e6


def test_one_cleanup_among_the_samples_does_not_hide_growth():
    levels = [1e9 + 5e6 * index - (300e6 if index > 30 else 0) for index in range(40)]
    assert history(levels).per_minute("memory") == pytest.approx(20e6, rel=0.3)


def test_no_rate_of_few_samples_or_a_short_time():
    assert history([1, 2, 3, 4]).per_minute("memory") is None
    assert history([1, 2, 3, 4, 5, 6], every=1.0, max_points=600).per_minute("memory") is None
    assert GrowthRates().per_minute("memory") is None


def test_history_is_bounded_in_points_and_keys():
    kept = history(range(10_000), every=0.1, window_seconds=100, max_points=10)
    for index in range(1000):
        kept.observe(10_000 + index, {f"agent {index}": 1.0})
    assert sum(len(points) for points in kept._points.values()) <= 110


def cycles(*ends, every=600.0):
    """The rates after readings at these counts of cycles, and bytes, `every` seconds apart."""
    kept = CycleRates()
    for index, (count, level) in enumerate(ends):
        kept.observe(index * every, count, {"memory": level})
    return kept


@pytest.mark.parametrize("every", [20.0, 600.0, 86_400.0])
def test_growth_a_cycle_is_known_from_the_fourth_end_on_however_long_cycles_take(every):
    ends = [(count, 1e9 + 572e6 * count) for count in range(7, 12)]
    assert cycles(*ends[:4], every=every).per_cycle("memory") is None
    assert cycles(*ends, every=every).per_cycle("memory") == pytest.approx(572e6)
    assert cycles(*ends).per_cycle("other") is None


def test_a_level_within_a_cycle_is_no_end_and_cycles_between_readings_count():
    swings = [(index // 4, 1e9 + 5e6 * (index // 4) + 900e6 * (index % 4)) for index in range(80)]
    assert cycles(*swings, every=15.0).per_cycle("memory") == pytest.approx(5e6)
    quick = [(7 * index, 1e9 + 21e6 * index) for index in range(40)]
    assert cycles(*quick, every=15.0).per_cycle("memory") == pytest.approx(3e6)


def test_the_ends_of_another_process_are_forgotten_and_their_number_is_bounded():
    kept = cycles(*((count, 1e9 * count) for count in range(10)))
    kept.observe(6000.0, 1, {"memory": 5e9})
    assert kept.per_cycle("memory") is None
    for count in range(10_000):
        kept.observe(6000.0 + count, count, {"memory": 0.0})
    assert len(kept._ends) in range(28, 33)
