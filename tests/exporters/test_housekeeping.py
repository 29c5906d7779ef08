from collections import deque

import pytest

from heapwatch.housekeeping import Schedule, bounded, close_figures


def test_a_bounded_history_keeps_the_newest():
    kept = bounded(range(10), 3)
    kept.append(10)
    assert kept == deque([8, 9, 10], maxlen=3)


@pytest.mark.parametrize("most", [0, -1, 2.5, True])
def test_a_history_or_a_schedule_without_a_sensible_number_is_refused(most):
    with pytest.raises(ValueError, match="above 0"):
        bounded([], most)
    with pytest.raises(ValueError, match="above 0"):
        Schedule().every(most, "step")


def test_functions_are_called_on_their_own_schedule():
    schedule, calls = Schedule(), []
    schedule.every(10, "episode")(lambda: calls.append("episode"))
    schedule.every(3, "step")(lambda: calls.append("step"))
    for _ in range(7):
        schedule.tick("step")
    for _ in range(10):
        schedule.tick("episode")
    assert calls == ["step", "step", "episode"]


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_one_that_raises_stops_neither_the_others_nor_training(kind):
    schedule, calls = Schedule(), []

    @schedule.every(1, "step")
    def broken():
        raise kind("no such tensor")

    schedule.every(1, "step")(lambda: calls.append(1))
    schedule.tick("step")
    assert calls == [1]
    assert "broken" in schedule.errors[0]
    assert "no such tensor" in schedule.errors[0]


def test_figures_are_closed_and_counted():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    for _ in range(3):
        pyplot.figure()
    assert close_figures() == 3
    assert pyplot.get_fignums() == []
    assert close_figures() == 0
