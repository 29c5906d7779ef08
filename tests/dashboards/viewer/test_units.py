import math

import pytest

from heapwatch_viewer.units import UNITS, write


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (1.5e9, "decbytes", None, "1.50 GB"),
        (0.0, "decbytes", 1, "0 B"),
        (-2_500_000, "decbytes", 1, "-2.5 MB"),
        (0.125, "percentunit", 1, "12.5%"),
        (5400, "s", 1, "1.5 h"),
        (0.002, "s", None, "2 ms"),
        (12, "short", 0, "12"),
        (1234, "short", None, "1.23 K"),
        (None, "s", None, "–"),
        (math.nan, "s", None, "–"),
        (math.inf, "s", None, "∞"),
    ],
)
def test_a_number_is_written_for_a_person(value, unit, decimals, text):
    assert write(value, UNITS[unit], decimals) == text
