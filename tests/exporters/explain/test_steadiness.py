"""A leak keeps its rate, in time, by the step or by the cycle; a cache that fills does not."""

import math

import pytest

from heapwatch.explain.series import LevelSeries
from heapwatch.explain.steadiness import is_steady


def series(level, seconds=300):
    readings = LevelSeries()
    for second in range(seconds):
        readings.add(float(second), level(second))
    return readings


def points(*levels):
    """Readings at 0 s, 100 s and 200 s."""
    readings = LevelSeries()
    for time, level in zip((0.0, 100.0, 200.0), levels, strict=False):
        readings.add(time, level)
    return readings


def test_even_growth_is_steady_after_more_than_three_minutes():
    assert is_steady(series(lambda second: 7 * second), (), 0.0)
    assert not is_steady(series(lambda second: 7 * second, seconds=180), (), 0.0)
    assert not is_steady(series(lambda second: 7 * second), (), 120.0)


@pytest.mark.parametrize("minutes", [2, 5, 10, 25])
def test_a_cache_that_fills_is_not(minutes):
    cache = series(lambda second: 1e5 * (1 - math.exp(-second / 60 / minutes)))
    assert not is_steady(cache, (), 0.0)
    assert not is_steady(cache, (series(lambda second: 90 * second),), 0.0)


@pytest.mark.parametrize("offset", [0, 3, 7, 11])
def test_an_item_every_fifteen_seconds_is_steady_wherever_the_middle_falls(offset):
    assert is_steady(series(lambda second: (second + offset) // 15, seconds=230), (), 0.0)


def test_growth_by_the_step_is_steady_whatever_the_speed():
    slowing = series(lambda second: 1000 * math.sqrt(second))
    assert not is_steady(slowing, (), 0.0)
    assert is_steady(slowing, (series(lambda second: 3), series(lambda second: 50 * math.sqrt(second))), 0.0)


def test_what_does_not_grow_is_not_steady():
    assert not is_steady(series(lambda second: 5), (), 0.0)
    assert not is_steady(LevelSeries(), (), 0.0)
    assert not is_steady(series(lambda second: 5 if second < 200 else second), (), 0.0)


def test_two_hundred_seconds_are_enough():
    assert is_steady(points(0.0, 10.0, 20.0), (), 0.0)


def test_growth_that_speeds_up_is_not_steady():
    assert is_steady(points(0.0, 1000.0, 2240.0), (), 0.0)
    assert not is_steady(points(0.0, 1000.0, 2260.0), (), 0.0)
    assert not is_steady(points(0.0, 1000.0, 3000.0), (), 0.0)


def test_a_count_may_be_half_an_item_off():
    assert is_steady(points(0.0, 10.0, 23.0), (), 0.0)
    assert not is_steady(points(0.0, 10.0, 24.0), (), 0.0)
    assert is_steady(points(0.0, 1.0, 2.0), (), 0.0)
    assert not is_steady(points(0.0, 0.5, 1.0), (), 0.0)


@pytest.mark.parametrize(("early", "late"), [(1, 2), (2, 1), (10, 20)])
def test_growth_by_the_cycle_is_steady_if_the_cycles_get_faster_or_slower(early, late):
    level = points(0.0, 1000.0 * early, 1000.0 * (early + late))
    assert is_steady(level, (points(0.0, early, early + late),), 0.0)
    assert not is_steady(level, (), 0.0)


@pytest.mark.parametrize(
    "pace", [points(0.0, 5.0, 5.0), points(0.0, 0.0, 5.0), points(0.0, 5.0), points(0.0)]
)
def test_a_pace_of_half_of_the_time_says_nothing(pace):
    assert not is_steady(points(0.0, 1000.0, 3000.0), (pace,), 0.0)
    assert is_steady(points(0.0, 1000.0, 2000.0), (pace,), 0.0)


def test_a_level_between_two_readings_lies_on_the_line_between_them():
    readings = LevelSeries()
    for time, level in ((0.0, 0.0), (10.0, 5.0), (20.0, 25.0)):
        readings.add(time, level)
    assert readings.at(15.0) == 15.0
    assert readings.at(20.0) == 25.0
    assert readings.at(21.0) is None
