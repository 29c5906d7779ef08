import pytest

from heapwatch.text.numbers import (
    count_change,
    duration,
    duration_range,
    from_to,
    gigabytes,
    megabytes,
    size,
    size_change,
    wait,
)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1000, "1 kB"),
        (16_540, "16.5 kB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1 GB"),
        (2.5e12, "2.5 TB"),
        (-4_200_000, "-4.2 MB"),
    ],
)
def test_a_size_has_three_digits_and_a_decimal_unit(nbytes, text):
    assert size(nbytes) == text
    assert size_change(nbytes) == (text if text.startswith("-") else f"+{text}")


def test_sizes_that_are_compared_have_one_unit():
    assert (gigabytes(4_230_400_000), gigabytes(-4_000_000, signed=True)) == ("4.230 GB", "-0.004 GB")
    assert gigabytes(4_000_000, signed=True) == "+0.004 GB"
    assert megabytes(738_340_000) == "738.3MB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (259_200, "3 days")],
)
def test_a_duration_has_the_unit_of_its_size(seconds, text):
    assert duration(seconds) == text


def test_a_time_to_wait_is_rounded_up():
    assert (wait(0.2), wait(119.5), wait(121)) == ("1 s", "120 s", "3 min")


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [
        (10.9, 20.1, "10 to 21 s"),
        (2400, 3600, "40 to 60 min"),
        (3601, 10_799, "1 to 3 h"),
        (3600, 3600, "60 min"),
        (30, 7300, "0 to 3 h"),
    ],
)
def test_a_range_is_rounded_apart_and_has_one_unit(least, most, text):
    assert duration_range(least, most) == text


@pytest.mark.parametrize(
    ("items", "text"), [(5035.2, "+5,035"), (10, "+10"), (9.87, "+9.9"), (-0.251, "-0.25"), (0, "+0")]
)
def test_a_change_of_a_count_has_its_sign(items, text):
    assert count_change(items) == text


def test_a_count_at_two_times():
    assert from_to(2, 18) == "2 -> 18 (+16)"
    assert from_to(18.4, 2) == "18 -> 2 (-16)"
