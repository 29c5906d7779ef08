"""The edges of each condition of a leak, one at a time; test_leak.py judges whole recordings."""

from __future__ import annotations

import pytest

from heapwatch.analysis import leak
from heapwatch.analysis.leak import MEMORY, material
from heapwatch.analysis.readings import Component

BODIES = Component("bodies", "dynamic")
LINE = [1e9 + 20e6 * look for look in range(12)]


@pytest.mark.parametrize(
    ("component", "level", "least"),
    [(MEMORY, 1e9, 25e6), (MEMORY, 1e8, 5e6), (BODIES, 100.0, 34.0), (BODIES, 0.0, 4.0), (BODIES, -1.0, 4.0)],
)
def test_the_least_rise_that_matters(component: Component, level: float, least: float) -> None:
    assert material(component, level) == least


def test_three_looks_confirm_and_a_quarter_of_an_hour_is_held() -> None:
    held = leak._held([None, 2.0, 3.0, 4.0, *[None] * 32], [7.0] * 36)
    assert held == [None, None, None, *[4.0] * 31, None, None]
    assert leak._held([1.0, 1.0, None, 1.0, 1.0], [7.0] * 5) == [None] * 5


def test_a_verdict_ends_with_the_process() -> None:
    growth = [1.0, 1.0, 1.0, 1.0, None, 1.0, 1.0, 1.0, 1.0]
    start = [7.0, 7.0, 7.0, None, 7.0, 7.0, 9.0, 9.0, 9.0]
    assert leak._held(growth, start) == [None, None, 1.0, 1.0, 1.0, 1.0, None, None, 1.0]


@pytest.mark.parametrize(
    ("seconds", "gains", "tolerated", "growth"),
    [
        (3600.0, (10e6, 10e6, 10e6), 0.0, 0.5e6),
        (3599.0, (10e6, 10e6, 10e6), 0.0, None),
        (3600.0, (10e6, 10e6, 10e6), 31e6, None),
        (3600.0, (10e6, 10e6, 10e6), 30e6, 0.5e6),
        (3600.0, (3e6, 3e6, 3e6), 0.0, None),  # less than twice what matters
        (3600.0, (4e6, 4e6, 4e6), 0.0, 0.2e6),
        (3600.0, (16e6, 6e6, 9e6), 0.0, None),  # one is most of it
        (3600.0, (14e6, 6e6, 10e6), 0.0, 0.5e6),
        (3600.0, (12e6, 10e6, 8e6), 0.0, None),  # the last added less
    ],
)
def test_cycles_that_each_add_about_the_same(
    seconds: float, gains: tuple[float, ...], tolerated: float, growth: float | None
) -> None:
    ends = [
        leak._CycleEnd(100 + seconds * number / 3, 50e6 + sum(gains[:number]), 5e6 + tolerated * number / 3)
        for number in range(4)
    ]
    assert leak._cycle_growth(MEMORY, ends) == (None if growth is None else pytest.approx(growth))
    assert leak._cycle_growth(MEMORY, ends[1:]) is None


@pytest.mark.parametrize(
    ("seen", "steepness"),
    [
        ([float(look) for look in range(12)], 1.0),
        ([0.0, 0, 0, *map(float, range(1, 10))], 5 / 3),  # nine changes
        ([0.0, 0, 0, 0, *map(float, range(1, 9))], None),  # eight
        ([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9.5], None),
        ([float(look) for look in range(11)], None),
        ([None, *map(float, range(11))], None),
        ([0.0, 1, 2, None, *map(float, range(4, 12))], 1.0),
        ([*map(float, range(6)), None, *map(float, range(7, 12))], None),
    ],
)
def test_a_count_that_rises_at_almost_every_look(seen: list[float | None], steepness: float | None) -> None:
    assert leak._every_look(seen) == steepness


def test_six_minutes_on_a_steep_line() -> None:
    assert leak._straight(LINE, [], LINE[-1], 2) == pytest.approx(1.0)
    assert leak._straight([None, *LINE[1:]], [], LINE[-1], 2) == pytest.approx(1.0)
    assert leak._straight([None, None, *LINE[2:]], [], LINE[-1], 2) is None
    assert leak._straight(LINE, [], 4.1e9, 2) is None, "40 MB a minute are less than a hundredth of it"
    assert leak._straight(LINE, [], 3.9e9, 2) == pytest.approx(1.0)
    assert leak._straight(LINE[::-1], [], LINE[-1], 2) is None
    assert leak._straight([1e9] * 12, [], 1e9, 2) is None


def test_a_young_process_has_to_rise_on_a_straighter_line() -> None:
    bent = [level + 7e6 * (-1) ** look for look, level in enumerate(LINE)]
    assert leak._straight(bent, [], bent[-1], 2) is not None
    assert leak._straight(bent, [], bent[-1], 1) is None


def test_a_line_over_the_steps_is_straight_too() -> None:
    taken = [0.0, 1, 2, 20, 21, 22, 40, 41, 42, 60, 61, 62]
    levels = [1e9 + 4e6 * count for count in taken]
    assert leak._straight(levels, [], levels[-1], 2) is None
    assert leak._straight(levels, taken, levels[-1], 1) is not None
    assert leak._straight(levels, taken[1:], levels[-1], 1) is None, "a reading of the steps is missing"
    assert leak._straight(levels, [None, *taken[1:]], levels[-1], 1) is None
    assert leak._straight(levels, [7.0] * 12, levels[-1], 1) is None, "no step was taken"
