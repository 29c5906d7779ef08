"""Verdicts on levels from cycle to cycle."""

from math import log

import pytest

from heapwatch.report.judgement import Terms, judged


def cycles(level, count=12):
    return [(float(cycle), float(level(cycle))) for cycle in range(count + 1)]


def word(level, count=12, **terms):
    return judged(cycles(level, count), Terms(10.0, "epoch", 60.0, **terms)).verdict


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        (lambda cycle: 100, "healthy"),
        (lambda cycle: 100 + cycle % 4 * 9, "healthy"),
        (lambda cycle: 100 + cycle / 2, "healthy"),
        (lambda cycle: 100 + 20 * cycle, "leak"),
        (lambda cycle: 100 + 20 * max(0, cycle - 5), "leak"),
        (lambda cycle: 100 + 200 * (1 - 0.5**cycle), "warm-up"),
        (lambda cycle: 100 + 60 * log(1 + cycle), "warm-up"),
        (lambda cycle: 100 + 50 * (cycle > 1), "warm-up"),
    ],
)
def test_a_level_is_reported_in_the_words_of_every_verdict(level, wanted):
    assert word(level, 20) == wanted


@pytest.mark.parametrize("count", range(2, 24))
@pytest.mark.parametrize("every", [2, 3, 5])
def test_what_rose_tenfold_is_never_healthy(count, every):
    assert word(lambda cycle: 200 if cycle % every == count % every and cycle else 2, count) != "healthy"


def rising(cycle):
    return 100 + 20 * cycle


def test_with_a_few_cycles_or_in_less_than_two_minutes_it_is_too_early():
    for count in range(1, 5):
        assert word(rising, count) == "too early"
        assert word(lambda cycle: 100, count) == "healthy"
    for seconds, wanted in ((2.0, "too early"), (12.0, "leak")):
        assert judged(cycles(rising), Terms(10.0, "epoch", seconds)).verdict == wanted


def test_a_bound_makes_it_fill_until_it_is_past_the_bound():
    assert word(rising, bound=500.0) == "filling"
    past = judged(cycles(rising), Terms(10.0, "epoch", 60.0, bound=200.0))
    assert (past.verdict, past.reason) == ("leak", "past its bound of 200, increasing by 20 each epoch")


def test_a_declared_limit_decides_what_is_too_much():
    assert word(lambda cycle: 3e6 * cycle, limit=5e6) == "growing"
    assert word(lambda cycle: 3e6 * cycle, limit=2e6) == "leak"


def test_what_the_judge_says_decides():
    assert word(rising, leaks=False) == "growing"
    assert word(rising, leaks=None) == "leak"
    assert word(lambda cycle: 100, leaks=True) == "leak"


def test_what_the_buffers_took_is_no_leak_until_they_are_full():
    filled = cycles(lambda cycle: 100 * min(cycle, 6))
    assert word(lambda cycle: 200 * min(cycle, 6) + cycle, filled=filled) == "filling"
    assert word(lambda cycle: 200 * cycle, filled=filled) == "leak"


def test_what_was_counted_after_the_buffers_were_full_is_not_explained_by_them():
    """Counted three times alone, as on a busy machine."""
    filled = [(1.0, 200.0), (4.0, 1000.0), (25.0, 1000.0)]
    for last, wanted in ((769.0, "filling"), (2679.0, "too early")):
        series = [(1.0, 272.0), (4.0, 769.0), (25.0, last)]
        assert judged(series, Terms(10.0, "epoch", 60.0, filled=filled)).verdict == wanted


@pytest.mark.parametrize(("begins", "since"), [(0, 1), (5, 6)])
def test_it_says_since_when_and_by_how_much(begins, since):
    found = judged(cycles(lambda cycle: 7 + 16 * max(0, cycle - begins)), Terms(10.0, "epoch", 60.0))
    assert (found.since, found.per_cycle) == (since, pytest.approx(16))
    assert found.reason == "increasing by 16 each epoch"
    assert found.change == 16 * (12 - begins)


@pytest.mark.parametrize("leaked", [1, 3, 8, 15, 16])
@pytest.mark.parametrize("began", [1, 2, 9, 30])
def test_a_count_that_stood_still_tells_the_cycle_in_which_the_leak_began(leaked, began):
    """Of a cycle in which 16 leak, the last part leaks alone. It is right in each cycle from then on."""

    def level(cycle):
        return 2 + (leaked + 16 * (cycle - began) if cycle >= began else 0)

    assert judged(cycles(level, began - 1), Terms(10.0, "epoch", 60.0, bound=2.0)).since == 0
    for count in range(began, began + 12):
        found = judged(cycles(level, count), Terms(10.0, "epoch", 60.0, bound=2.0))
        assert (found.verdict, found.since) == ("leak", began)
        assert found.per_cycle == (leaked if count == began else 16)


@pytest.mark.parametrize(("rise", "explained"), [(80, True), (81, False)])
def test_a_fill_explains_only_as_much_as_fills(rise, explained):
    """It ends in the third cycle; eight objects an item would explain ten times as much as rises later."""
    full = cycles(lambda cycle: 1000 * min(cycle, 3), 13)
    series = cycles(lambda cycle: 100 * min(cycle, 3) + rise / 10 * max(0, cycle - 3), 13)
    found = judged(series, Terms(80.0, "epoch", 60.0, filled=full))
    assert (found.verdict == "filling") == explained


def test_what_rises_unevenly_after_the_buffers_are_full_is_not_explained_by_them():
    full = cycles(lambda cycle: 400 * min(cycle, 2.5), 34)
    series = cycles(lambda cycle: 272 + 120 * cycle + 60 * (cycle % 3), 34)
    assert judged(series, Terms(80.0, "epoch", 4.0, filled=full)).verdict != "filling"
