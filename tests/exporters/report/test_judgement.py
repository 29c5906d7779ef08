"""Verdicts on levels from cycle to cycle."""

from math import log

import pytest

from heapwatch.report.judgement import Terms, judged


def cycles(level, count=12):
    return [(float(cycle), float(level(cycle))) for cycle in range(count + 1)]


def word(level, count=12, **terms):
    return judged(cycles(level, count), Terms(10.0, "epoch", **terms)).verdict


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
def test_a_level_is_told_in_the_words_of_every_verdict(level, wanted):
    assert word(level, 20) == wanted


@pytest.mark.parametrize("count", range(2, 24))
@pytest.mark.parametrize("every", [2, 3, 5])
def test_what_rose_tenfold_is_never_healthy(count, every):
    assert word(lambda cycle: 200 if cycle % every == count % every and cycle else 2, count) != "healthy"


@pytest.mark.parametrize("count", range(1, 5))
def test_with_a_few_cycles_it_is_too_early(count):
    assert word(lambda cycle: 100 + 20 * cycle, count) == "too early"
    assert word(lambda cycle: 100, count) == "healthy"


def test_a_bound_makes_it_fill_until_it_is_past_the_bound():
    rising = cycles(lambda cycle: 20 * cycle)
    assert judged(rising, Terms(10.0, "epoch", bound=500.0)).verdict == "filling"
    past = judged(rising, Terms(10.0, "epoch", bound=200.0))
    assert (past.verdict, past.reason) == ("leak", "past its bound of 200, increasing by 20 each epoch")


def test_a_declared_limit_decides_what_is_too_much():
    assert word(lambda cycle: 3e6 * cycle, limit=5e6) == "growing"
    assert word(lambda cycle: 3e6 * cycle, limit=2e6) == "leak"


def test_where_the_rules_can_judge_they_decide_about_memory():
    def rising(cycle):
        return 100 + 20 * cycle

    assert word(rising, by_rules=False, decided=True) == "growing"
    assert word(rising, by_rules=None, decided=True) == "leak"
    assert word(lambda cycle: 100, by_rules=True) == "leak"


def test_what_the_buffers_took_is_no_leak_until_they_are_full():
    filled = cycles(lambda cycle: 100 * min(cycle, 6))
    assert word(lambda cycle: 200 * min(cycle, 6) + cycle, filled=filled) == "filling"
    assert word(lambda cycle: 200 * cycle, filled=filled) == "leak"


@pytest.mark.parametrize(("begins", "since"), [(0, 1), (5, 6)])
def test_it_says_since_when_and_by_how_much(begins, since):
    found = judged(cycles(lambda cycle: 7 + 16 * max(0, cycle - begins)), Terms(10.0, "epoch"))
    assert (found.since, found.per_cycle) == (since, pytest.approx(16))
    assert found.reason == "increasing by 16 each epoch"
    assert found.change == 16 * (12 - begins)
