import pytest

from heapwatch.collectors.progress import ProgressCollector
from tests.exporters.exposed import value, values


@pytest.fixture
def progress(failures, safe_point, clock):
    return ProgressCollector(failures, safe_point, clock)


def counts(progress):
    return values(progress.collect(), "trainer_progress_total", "unit")


def moved_at(progress):
    return value(progress.collect(), "trainer_last_progress_timestamp_seconds")


def test_before_the_first_progress_nothing_is_said(progress):
    assert counts(progress) == {}
    assert moved_at(progress) is None


def test_units_count(progress, safe_point):
    safe_point.steps += 3
    progress.advance("step", 5)
    progress.advance("generation")
    progress.advance("epoch", 2)
    assert counts(progress) == {"step": 8, "generation": 1, "epoch": 2}


def test_the_time_of_the_last_progress_stands_still_when_training_does(progress, safe_point, clock):
    safe_point.steps += 1
    assert moved_at(progress) == clock.now
    stopped = clock.now
    clock.now += 1000
    assert moved_at(progress) == stopped
    progress.advance("generation")
    assert moved_at(progress) == clock.now


@pytest.mark.parametrize("unit", ["", "a\nb", None, 3, ["x"], {}])
def test_a_bad_unit_never_stops_training(progress, failures, unit):
    progress.advance(unit)
    assert counts(progress) == {"other": 1}
    assert failures.counts["progress"] == 1


@pytest.mark.parametrize("count", [-1, None, "two", float("nan"), 10**30, True, []])
def test_a_bad_count_never_stops_training(progress, failures, count):
    progress.advance("epoch", count)
    progress.advance("step", count)
    assert counts(progress) == {"other": 2}
    assert failures.counts["progress"] == 2


def test_units_from_data_are_bounded(progress):
    for number in range(1000):
        progress.advance(f"unit {number}")
    found = counts(progress)
    assert len(found) <= 17
    assert sum(found.values()) == 1000


def test_the_longest_pause_between_signs_of_progress_is_kept(progress, safe_point, clock):
    for pause in (1, 900, 5):
        clock.now += pause
        progress.advance("generation")
        progress.observe()
    clock.now += 5000
    assert value(progress.collect(), "trainer_longest_pause_seconds") == 900
