import pytest

from heapwatch.explain.cleaned import Cleaned
from heapwatch.explain.findings import Explanation, Finding

HISTORY = Finding("container", "walker.leaks.history", "list of bytes", is_leak=True)
LEAK = Explanation("leak", 90.0, 1.9e9, 1.0, (HISTORY,))


def text(before=LEAK, *, ago=45.0, grown=0.0, action="emergency", left=338e6):
    return Cleaned(action, 100.0, 2.13e9, left, before).text(100.0 + ago, left + grown)


def test_it_says_what_was_freed_what_grew_until_then_and_that_the_growth_has_ended():
    assert text() == (
        "An emergency cleanup freed 2.13 GB 45 s ago. "
        "Until then memory grew by 1.9 GB/min, most of it `walker.leaks.history`. "
        "Since then memory has not grown."
    )


def test_it_says_that_the_growth_goes_on():
    assert text(grown=300e6).endswith("Since then memory has grown by 300 MB.")
    assert text(grown=300e6, ago=2.0).endswith("Since then memory has grown by 300 MB.")
    assert text(grown=4.9e6).endswith("Since then memory has not grown.")
    for left in (338e6, 40e9):  # whatever share of the process it is
        assert text(grown=5e6, left=left).endswith("Since then memory has grown by 5 MB.")


@pytest.mark.parametrize("left", [200e6, 40e9])
def test_what_has_not_grown_for_a_few_seconds_is_not_said_to_stand_still(left):
    assert text(ago=9.9, left=left).endswith("`walker.leaks.history`.")
    assert text(ago=10.0, left=left).endswith("Since then memory has not grown.")


def test_a_cleanup_of_a_healthy_process_is_told_without_growth():
    healthy = Explanation("healthy", 90.0, 1e5, 1.0)
    assert text(healthy, action="regular") == (
        "A regular cleanup freed 2.13 GB 45 s ago. Since then memory has not grown."
    )


def test_it_is_told_for_a_quarter_of_an_hour():
    assert text(ago=900.0)
    assert not text(ago=900.1)
