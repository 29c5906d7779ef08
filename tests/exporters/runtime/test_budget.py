import pytest

from heapwatch.runtime.budget import Costs, fair_share


def costs(*samples):
    found = Costs()
    for cpu, wall in samples:
        found.add(cpu, wall)
    return found


def test_before_the_first_sample_nothing_delays_it():
    assert Costs().interval(0.01) == 0.0


def test_one_expensive_sample_is_spread_over_those_that_follow():
    assert costs((0.4, 0.4)).interval(0.01) == pytest.approx(0.4 / 4 / 0.01)
    assert costs((0.4, 0.4), *[(0.0, 0.0)] * 15).interval(0.01) == pytest.approx(0.4 / 16 / 0.01)
    assert costs((0.4, 0.4), *[(0.0, 0.0)] * 16).interval(0.01) == 0.0


def test_waiting_counts_when_it_happened_twice():
    assert costs((0.0, 1.0)).interval(0.5) == 0.0
    assert costs((0.0, 1.0), (0.0, 0.0)).interval(0.5) == 0.0
    assert costs((0.0, 1.0), (0.0, 0.5)).interval(0.5) == pytest.approx(0.5 / 0.02)


def test_the_higher_of_both_needs_decides():
    assert costs((0.1, 1.1), (0.1, 1.1)).interval(0.001) == pytest.approx(0.2 / 4 / 0.001)


@pytest.mark.parametrize(
    ("wanted", "share"),
    [
        ([], 1.0),
        ([0.2, 0.3], 1.0),
        ([0.9, 0.9], 0.5),
        ([0.1, 0.9, 0.9], 0.45),
        ([0.9, 0.1, 0.2], 0.7),
        ([0.5, 0.5], 1.0),
    ],
)
def test_those_that_need_less_leave_the_rest_to_the_others(wanted, share):
    assert fair_share(1.0, wanted) == pytest.approx(share)
