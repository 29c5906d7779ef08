from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pytest

from heapwatch.judge.level import LevelSeries, is_steady


def series(*levels: float, every: float = 1.0) -> LevelSeries:
    found = LevelSeries()
    for at, level in enumerate(levels):
        found.add(at * every, level)
    return found


def test_a_steady_rise_continues():
    growth = series(*(10.0 * at for at in range(100))).growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize(
    "levels",
    [
        [float(at % 20) for at in range(200)],
        [min(40.0, float(at)) for at in range(200)],
        [float(at > 50) for at in range(100)],
        [1.0, 2.0, 3.0],
        [],
    ],
    ids=["emptied now and then", "levels off", "one step", "few readings", "no reading"],
)
def test_what_does_not_rise(levels):
    assert not series(*levels).growth().rising


def test_what_is_emptied_down_to_a_higher_floor_each_time_rises():
    growth = series(*(at // 20 * 5.0 + at % 20 for at in range(200))).growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(0.25, rel=0.3)


def test_only_what_came_after_the_start_counts():
    found = series(*(min(40.0, float(at)) for at in range(100)))
    assert found.growth(start=60.0).total == 0.0


def test_a_rise_begins_where_the_level_is_no_longer_constant():
    found = series(*(10.0 * max(0, at - 300) + 40.0 * (at % 7) for at in range(400)))
    assert found.rise_began() == pytest.approx(300, abs=20)
    assert found.rise_began(start=310) == 310
    assert not found.growth().rising
    assert found.growth(found.rise_began()).per_second == pytest.approx(10.0, rel=0.2)


@pytest.mark.parametrize(
    "levels",
    [
        [10.0 * at for at in range(400)],
        [10.0 * at + 40.0 * (at % 7) for at in range(400)],
        [10.0 * max(0, at - 20) for at in range(400)],
        [800.0 * (at // 80) for at in range(400)],
        [300.0 * at**0.5 for at in range(400)],
        [7.0] * 400,
        [400.0 - at for at in range(400)],
        [1.0],
        [],
    ],
    ids=["even", "noise", "soon", "in steps", "more slowly", "never", "falls", "one reading", "no reading"],
)
def test_what_never_stood_still_rises_from_the_start(levels):
    assert series(*levels).rise_began(0.0) == 0.0


def test_memory_is_bounded_and_the_rate_survives():
    found = series(*(3.0 * at for at in range(50_000)))
    assert len(found.since(0.0)) <= 49
    assert found.growth().per_second == pytest.approx(3.0, rel=0.05)


def test_a_rise_that_begins_late_shows_within_hours():
    began, hours = 200_000, 4
    late = (max(0.0, at - began) * 2.0 for at in range(0, began + hours * 3600, 10))
    growth = series(*late, every=10.0).growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(2.0, rel=0.1)


def read_at(times: Iterable[float], level: Callable[[float], float]) -> LevelSeries:
    found = LevelSeries()
    for time in times:
        found.add(time, level(time))
    return found


def test_a_quarter_without_readings_hides_no_leak():
    """Nothing was read from the 40th to the 80th second of 94: the machine was busy."""
    times = [*map(float, range(40)), *map(float, range(80, 95))]
    growth = read_at(times, lambda time: 10.0 * time).growth()
    assert growth.rising
    assert growth.per_second == pytest.approx(10.0, rel=0.1)
    assert not read_at(times, lambda time: 500.0 * (time >= 60)).growth().rising, (
        "a step in that time is none"
    )
    half = [*times[:20], *times[40:]]
    assert not read_at(half, lambda time: 10.0 * time).growth().rising, "half of the time says nothing"


def shaped(level, seconds=300):
    return read_at(map(float, range(seconds)), level)


def test_even_growth_is_steady_after_more_than_three_minutes():
    assert is_steady(shaped(lambda second: 7 * second), (), 0.0)
    assert not is_steady(shaped(lambda second: 7 * second, seconds=180), (), 0.0)
    assert not is_steady(shaped(lambda second: 7 * second), (), 120.0)


@pytest.mark.parametrize("minutes", [2, 5, 10, 25])
def test_a_cache_that_fills_is_not(minutes):
    cache = shaped(lambda second: 1e5 * (1 - math.exp(-second / 60 / minutes)))
    assert not is_steady(cache, (), 0.0)
    assert not is_steady(cache, (shaped(lambda second: 90 * second),), 0.0)


@pytest.mark.parametrize("offset", [0, 3, 7, 11])
def test_an_item_every_fifteen_seconds_is_steady_wherever_the_middle_falls(offset):
    assert is_steady(shaped(lambda second: (second + offset) // 15, seconds=230), (), 0.0)


def test_growth_by_the_step_is_steady_whatever_the_speed():
    slowing = shaped(lambda second: 1000 * math.sqrt(second))
    assert not is_steady(slowing, (), 0.0)
    assert is_steady(slowing, (shaped(lambda second: 3), shaped(lambda second: 50 * math.sqrt(second))), 0.0)


def test_what_does_not_grow_is_not_steady():
    assert not is_steady(shaped(lambda second: 5), (), 0.0)
    assert not is_steady(LevelSeries(), (), 0.0)
    assert not is_steady(shaped(lambda second: 5 if second < 200 else second), (), 0.0)
