from __future__ import annotations

import pytest

from heapwatch.judge.growth import COUNTED, CYCLES, MEASURED, Standard, lasts


@pytest.mark.parametrize("standard", [COUNTED, MEASURED, CYCLES])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e12])
def test_even_growth_lasts_by_every_standard(standard, size):
    assert lasts([size] * 4, standard, largest_step=size / 5, earlier=2 * size)


@pytest.mark.parametrize("standard", [COUNTED, MEASURED, CYCLES])
@pytest.mark.parametrize(
    "rises", [[0.0] * 4, [4.0, 3.0, 1.0, 0.1], [1.0, -4.0, 1.0, 1.0], [8.0, 0.0, 0.0, 0.0]]
)
def test_what_stands_still_slows_down_or_falls_does_not(standard, rises):
    assert not lasts(rises, standard)


def test_a_single_step_does_not():
    assert not lasts([1.0] * 4, MEASURED, largest_step=2.0)


def test_growth_that_was_as_fast_before_lasts_and_one_that_slows_down_does_not():
    assert lasts([1.0] * 4, MEASURED, earlier=2.0)
    assert not lasts([1.0] * 4, MEASURED, earlier=2.5)


def test_parts_of_different_length_are_compared_by_their_rates():
    slow_end = Standard(last_part=0.5)
    assert not lasts([1.0, 1.0, 0.2], slow_end)
    assert lasts([1.0, 1.0, 0.2], slow_end, seconds=[1.0, 1.0, 0.3])
