import random

import pytest

from heapwatch.judge.rates import GrowthRates


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
