"""The edges of each condition of a leak, one at a time; test_leak.py judges whole recordings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heapwatch.analysis import leak
from heapwatch.analysis.leak import Marks, material
from heapwatch.analysis.observed import Process
from heapwatch.analysis.readings import MEMORY, Component
from heapwatch.analysis.timeline import Sums, Values, slope

BODIES = Component("bodies", "dynamic")
LINE = [1e9 + 20e6 * index for index in range(12)]
EVALUATIONS = 200
LAST = EVALUATIONS - 1


def process(**series: Any) -> Process:
    """A process that started at 0 and is looked at every 30 seconds."""
    return Process(
        **{"start": [0.0] * EVALUATIONS, "time": [30.0 * index for index in range(EVALUATIONS)], **series}
    )


def marks(gains: list[float], high_water: float | None = 1e9, burst: float | None = None) -> Any:
    """Marks whose gains end at the last evaluation."""
    before = [0.0] * (EVALUATIONS - len(gains))
    bursts = dict.fromkeys(leak.WINDOWS, [burst] * EVALUATIONS)
    return SimpleNamespace(gains=Sums(before + gains), high_water=[high_water] * EVALUATIONS, bursts=bursts)


@pytest.mark.parametrize(
    ("component", "level", "least"),
    [(MEMORY, 1e9, 25e6), (MEMORY, 1e8, 5e6), (BODIES, 100.0, 34.0), (BODIES, 0.0, 4.0), (BODIES, -1.0, 4.0)],
)
def test_the_least_rise_that_matters(component: Component, level: float, least: float) -> None:
    assert material(component, level) == least


def test_three_evaluations_confirm_and_a_quarter_of_an_hour_is_held() -> None:
    held = leak._held([None, 2.0, 3.0, 4.0, *[None] * 32], [7.0] * 36, [False] * 36)
    assert held == [None, None, None, *[4.0] * 31, None, None]
    assert leak._held([1.0, 1.0, None, 1.0, 1.0], [7.0] * 5, [False] * 5) == [None] * 5


def test_a_verdict_ends_when_it_is_withdrawn_and_with_the_process() -> None:
    back = [False, False, True, True, False]
    assert leak._held([1.0, 1.0, 1.0, None, None], [7.0] * 5, back) == [None, None, 1.0, None, None]
    growth = [1.0, 1.0, 1.0, 1.0, None, 1.0, 1.0, 1.0, 1.0]
    start = [7.0, 7.0, 7.0, None, 7.0, 7.0, 9.0, 9.0, 9.0]
    assert leak._held(growth, start, [False] * 9) == [None, None, 1.0, 1.0, 1.0, 1.0, None, None, 1.0]


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
        ([float(index) for index in range(12)], 1.0),
        ([0.0, 0, 0, *map(float, range(1, 10))], 5 / 3),  # nine changes
        ([0.0, 0, 0, 0, *map(float, range(1, 9))], None),  # eight
        ([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9.5], None),
        ([float(index) for index in range(11)], None),
        ([None, *map(float, range(11))], None),
        ([0.0, 1, 2, None, *map(float, range(4, 12))], 1.0),
        ([*map(float, range(6)), None, *map(float, range(7, 12))], None),
    ],
)
def test_a_count_that_rises_at_almost_every_evaluation(
    seen: list[float | None], steepness: float | None
) -> None:
    assert leak._at_every_evaluation(seen) == steepness


def test_six_minutes_on_a_steep_line() -> None:
    assert leak._straight(LINE, [], LINE[-1], 2) == pytest.approx(1.0)
    assert leak._straight([None, *LINE[1:]], [], LINE[-1], 2) == pytest.approx(1.0)
    assert leak._straight([None, None, *LINE[2:]], [], LINE[-1], 2) is None
    assert leak._straight(LINE, [], 4.1e9, 2) is None, "40 MB a minute are less than a hundredth of it"
    assert leak._straight(LINE, [], 3.9e9, 2) == pytest.approx(1.0)
    assert leak._straight(LINE[::-1], [], LINE[-1], 2) is None
    assert leak._straight([1e9] * 12, [], 1e9, 2) is None


def test_a_young_process_has_to_rise_on_a_straighter_line() -> None:
    bent = [level + 7e6 * (-1) ** index for index, level in enumerate(LINE)]
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


@pytest.mark.parametrize(("missing", "mark"), [(22, 10.0), (23, 7.0)])
def test_the_mark_is_valid_for_ten_minutes_without_samples(missing: int, mark: float) -> None:
    """The lowest of four evaluations bridges three of them."""
    assert Marks([10.0] * 8 + [None] * missing + [7.0], [False] * (9 + missing)).high_water[-1] == mark


@pytest.mark.parametrize(("missing", "gain"), [(3, 5.0), (4, 5.0), (5, 0.0)])
def test_what_is_gained_while_more_than_one_evaluation_is_missing_is_no_gain(
    missing: int, gain: float
) -> None:
    seen = Marks([10.0] * 8 + [None] * missing + [15.0], [False] * (9 + missing))
    assert seen.gains.over(9 + missing, 8 + missing) == gain
    assert seen.high_water[-1] == 15.0


def test_a_rise_counts_after_four_evaluations_and_nothing_does_at_a_reset() -> None:
    levels: Values = [10.0] * 8 + [15.0] * 4
    assert Marks(levels, [False] * 12).high_water == [10.0] * 11 + [15.0]
    reset = Marks(levels, [False] * 11 + [True])
    assert (reset.high_water[-1], reset.gains.over(12, 11)) == (15.0, 0.0)


def test_a_burst_is_of_the_window_as_long_as_any_of_its_evaluations() -> None:
    seen = Marks([10.0] * 50 + [15.0] * 50, [False] * 100)
    assert [index for index, burst in enumerate(seen.bursts[16]) if burst] == [*range(53, 85)]


EVEN = (10, 10, 10, 10)


@pytest.mark.parametrize(
    ("earlier", "quarters", "level", "burst", "leaks"),
    [
        (20, EVEN, 1e9, 6.25, True),
        (20, EVEN, 1.5e9, 6.25, True),
        (20, EVEN, 1.7e9, 6.25, False),  # not material
        (20, EVEN, None, 6.25, False),
        (20, EVEN, 1e9, None, True),
        (20, EVEN, 1e9, 12.4, True),
        (20, EVEN, 1e9, 12.6, False),  # one step is most of it
        (20, (11.5, 10, 10, 10), 1e9, 6.25, True),
        (20, (12, 10, 10, 10), 1e9, 6.25, False),  # the second half gained less
        (20, (10, 10, 11, 9), 1e9, 6.25, True),
        (20, (10, 10, 11.2, 8.8), 1e9, 6.25, False),  # the last quarter gained less
        (21, EVEN, 1e9, 6.25, True),
        (21.2, EVEN, 1e9, 6.25, False),  # more was gained before
        (0, (0, 0, 0, 0), 1e9, None, False),
    ],
)
def test_a_window_of_sixteen_minutes(
    earlier: float, quarters: tuple[float, ...], level: float | None, burst: float | None, leaks: bool
) -> None:
    gains = [earlier * 1e6 / 16] * 16 + [quarter * 1e6 / 8 for quarter in quarters for _ in range(8)]
    seen = marks(gains, level, burst and burst * 1e6)
    growth = leak._in_window(process(), MEMORY, seen, 16, LAST)
    assert growth == (pytest.approx(sum(quarters) * 1e6 / 16) if leaks else None)


def test_a_window_needs_a_process_half_as_old_again() -> None:
    seen = marks([10e6 / 8] * 48)
    for age, leaks in ((48, True), (47, False)):
        young = process(start=[None] * (LAST - age) + [0.0] * (age + 1))
        assert (leak._in_window(young, MEMORY, seen, 16, LAST) is not None) == leaks


@pytest.mark.parametrize(
    ("bend", "maturity", "leaks"),
    [(1.0, 0, False), (1.0, 1, True), (1.25, 1, False), (1.25, 2, True), (1.6, 2, False)],
)
def test_six_minutes_that_bend(bend: float, maturity: int, leaks: bool) -> None:
    levels: Values = [1e9] * EVALUATIONS
    for index in range(12):
        levels[index - 12] = 1e9 + 20e6 * (min(index, 5.5) + bend * max(0.0, index - 5.5))
    growth = leak._fast(process(), MEMORY, levels, marks([20e6] * 12), maturity, LAST)
    assert growth == (pytest.approx(40e6) if leaks else None)


@pytest.mark.parametrize(
    ("gained", "mark", "leaks"), [(34.0, 100.0, False), (36.0, 100.0, True), (36.0, None, False)]
)
def test_a_count_rises_by_more_than_its_error(gained: float, mark: float | None, leaks: bool) -> None:
    levels: Values = [float(index) for index in range(EVALUATIONS)]
    growth = leak._fast(process(), BODIES, levels, marks([gained], mark), 2, LAST)
    assert growth == (6.0 if leaks else None)


def test_a_rise_that_is_not_material_is_no_fast_leak() -> None:
    levels: Values = [1e9 - 20e6 * (LAST - index) for index in range(EVALUATIONS)]
    assert leak._fast(process(), MEMORY, levels, marks([25e6]), 2, LAST) is None
    assert leak._fast(process(), MEMORY, levels, marks([26e6]), 2, LAST) is not None


def test_a_count_that_rises_twice_as_fast_is_no_leak_unless_steps_do_too() -> None:
    seen = [0.0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16]
    levels = [0.0] * (EVALUATIONS - 12) + seen
    gains = marks([10.0] * 12, 100.0)
    assert leak._fast(process(), BODIES, [*levels], gains, 2, LAST) is None
    assert leak._fast(process(steps=[*levels]), BODIES, [*levels], gains, 2, LAST) == pytest.approx(20.0)


def test_how_far_a_level_follows_the_steps() -> None:
    counted = [float(index) for index in range(12)]
    zigzag = [index + 4.0 * (index % 2) for index in counted]
    assert leak._by_steps([7 + 2 * count for count in counted], [*counted]) == pytest.approx(1.0)
    assert leak._by_steps([*zigzag], [*counted]) == pytest.approx(0.7814, abs=0.001)


@pytest.mark.parametrize(
    ("maturity", "age", "ways"),
    [
        (2, None, [16, 32, 64, 6]),
        (1, None, [32, 64, 6]),
        (0, None, [32, 64, 6]),
        (2, 45, [16, 32, 64, 6]),
        (2, 46, [16, 32, 64]),
        (2, 120, [16, 32, 64]),
        (2, 121, [32, 64]),
        (2, 240, [32, 64]),
        (2, 241, [64]),
        (2, 480, [64]),
        (2, 481, []),
    ],
)
def test_samples_are_new_enough_for_the_window(
    monkeypatch: pytest.MonkeyPatch, maturity: int, age: float | None, ways: list[int]
) -> None:
    monkeypatch.setattr(leak, "_in_window", lambda process, component, marks, minutes, index: minutes)
    monkeypatch.setattr(leak, "_fast", lambda *_: 6)
    aged = process(sample_age=None if age is None else {"memory": [float(age)] * EVALUATIONS})
    level: Values = [1e9] * EVALUATIONS
    never = [False] * EVALUATIONS
    found = leak._found(aged, MEMORY, level, marks([]), [maturity] * EVALUATIONS, never, LAST)
    assert found == [*[[]] * LAST, ways]


def named(named: float, level: Values) -> float | None:
    return leak._named_at(process(named=[named] * EVALUATIONS), level, LAST)


def test_growth_with_a_name_is_that_of_six_minutes() -> None:
    level: Values = [9e9] * (EVALUATIONS - 12) + [1e9] * 2 + [1e9 + 10e6 * index for index in range(10)]
    assert named(5e6, level) == pytest.approx(2 * (slope(level[-12:]) or 0.0))


@pytest.mark.parametrize(
    ("per_minute", "leaks"),
    [(1.5e6, False), (1.6e6, True), (39e6, True), (41e6, False)],
    ids=["not material", "material", "just enough", "most of it is no growth of memory"],
)
def test_growth_with_a_name_is_material_and_makes_memory_grow(per_minute: float, leaks: bool) -> None:
    level: Values = [1e9 + 10e6 * (index - LAST) for index in range(EVALUATIONS)]  # 20 MB a minute
    assert named(per_minute, level) == (pytest.approx(20e6) if leaks else None)


@pytest.mark.parametrize(("evaluations", "share", "leaks"), [(4, 0.4, True), (3, 0.4, False), (3, 0.6, True)])
@pytest.mark.parametrize("counting", [True, False])
def test_a_name_is_for_most_of_the_growth_or_comes_four_times(
    evaluations: int, share: float, leaks: bool, counting: bool
) -> None:
    level: Values = [1e9 + 10e6 * (index - LAST) for index in range(EVALUATIONS)]
    names: Values = [None] * (EVALUATIONS - evaluations) + [10e6] * evaluations
    series = {"steps": [100.0 * index for index in range(EVALUATIONS)]} if counting else {}
    found = leak._named_at(process(named=names, named_share=[share] * EVALUATIONS, **series), level, LAST)
    assert (found is not None) is leaks


def test_a_young_script_that_counts_nothing_is_believed_if_it_names_often() -> None:
    level: Values = [1e9 + 10e6 * (index - LAST) for index in range(EVALUATIONS)]
    young: Values = [None] * (EVALUATIONS - 12) + [0.0] * 12
    for evaluations, leaks in ((4, True), (3, False)):
        names: Values = [None] * (EVALUATIONS - evaluations) + [10e6] * evaluations
        about = process(start=young, named=names, named_share=[1.0] * EVALUATIONS)
        assert (leak._named_at(about, level, LAST) is not None) is leaks


def test_growth_with_a_name_is_searched_for_since_an_evaluation_and_not_at_a_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leak, "_named_at", lambda *_: 1.0)
    reset = [False, False, False, True, False]
    assert leak._named(process(), [1e9] * 5, reset, 2) == [None, None, 1.0, None, 1.0]


def by_cycles(component: Component = MEMORY, reset: int | None = None, **series: Any) -> float | None:
    """Growth at the last of four cycles of 20 minutes, of which each adds 10 MB to 100 MB."""
    counted = [float(index // 40) for index in range(EVALUATIONS)]
    seen = SimpleNamespace(high_water=[1e8 + 10e6 * count for count in counted])
    resets = [index == reset for index in range(EVALUATIONS)]
    return leak._by_cycles(process(**{"cycles": counted, **series}), component, seen, resets)[LAST]


def test_cycles_since_the_last_reset_are_compared() -> None:
    again = [float((index // 40) % 4) for index in range(EVALUATIONS)]
    assert by_cycles() == pytest.approx(0.5e6)
    assert by_cycles(reset=100) is None
    assert by_cycles(cycles=again) is None, "the count began again"
    assert by_cycles(cycles=None) is None
    missed: Values = [float(index // 40) for index in range(EVALUATIONS)]
    missed[100] = None
    assert by_cycles(cycles=missed) == pytest.approx(0.5e6), "a missed scrape between two ends"


def test_bounded_buffers_that_fill_explain_cycles_of_the_trainers_memory_alone() -> None:
    filling = [200e6 * (index // 40) for index in range(EVALUATIONS)]
    assert by_cycles(bounded=[*filling]) is None
    assert by_cycles(bounded=[None] * EVALUATIONS) == pytest.approx(0.5e6)
    assert by_cycles(Component("memory", "worker"), bounded=[*filling]) == pytest.approx(0.5e6)
    assert by_cycles(BODIES) is None
