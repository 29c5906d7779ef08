"""Since when a level rises: what fills, stands still and then leaks, leaks again, or is rarely read."""

import random

import pytest

from heapwatch.report.since import rise_of

ENDS = (8, 20, 60, 200, 650)  # cycles after the leak was switched on


def history(began, end, *, full=1000.0, filled=107, rate=20.0, cleaned=None, every=1):
    """A history that fills until a cycle, stands still, and leaks from the end of another on.

    It is read every so many cycles; with `cleaned` there was a leak before it, from the first to the second.
    """

    def level(cycle):
        leaked = rate * max(0, cycle - began)
        if cleaned and cleaned[0] < cycle < cleaned[1]:
            leaked = rate * (cycle - cleaned[0])
        return min(full, full * cycle / filled) + leaked

    return [(float(cycle), level(cycle - cycle % every)) for cycle in range(end + 1)]


@pytest.mark.parametrize("after", ENDS)
@pytest.mark.parametrize(("began", "bound"), [(120, 1000.0), (250, 1000.0), (250, None), (440, None)])
def test_a_history_that_filled_before_it_leaked_leaks_since_the_leak(began, bound, after):
    _, since, rate = rise_of(history(began, began + after), bound)
    assert since == began + 1
    assert rate == pytest.approx(20)


@pytest.mark.parametrize("after", ENDS)
def test_a_second_leak_after_a_cleanup_begins_when_it_begins(after):
    series = history(440, 440 + after, cleaned=(250, 300))
    assert rise_of(series, 1000.0)[1] == 441
    assert abs(rise_of(series)[1] - 441) <= 1


@pytest.mark.parametrize("every", [2, 5, 12])
@pytest.mark.parametrize("after", [60, 200])
def test_readings_that_are_older_than_their_cycle_hardly_move_it(every, after):
    _, since, _ = rise_of(history(250, 250 + after, every=every), 1000.0)
    assert abs(since - 251) <= 2


@pytest.mark.parametrize("seed", range(10))
def test_with_noise_it_is_near(seed):
    noise = random.Random(seed)
    series = [(cycle, level + noise.gauss(0, 20)) for cycle, level in history(250, 400)]
    assert abs(rise_of(series)[1] - 251) <= 6


@pytest.mark.parametrize("steps", [3, 5, 20])
def test_what_rises_in_steps_from_the_start_on_rises_since_the_start(steps):
    series = [(float(cycle), 100.0 * (cycle * steps // 120)) for cycle in range(121)]
    assert rise_of(series)[1] <= 120 / steps


def test_a_level_that_was_above_its_bound_from_the_start_began_there():
    assert rise_of([(float(cycle), 1500.0 + cycle) for cycle in range(30)], 1000.0)[1] == 1
    assert rise_of([(0.0, 1500.0), (1.0, 1500.0)], 1000.0)[:2] == (0.0, 1)
