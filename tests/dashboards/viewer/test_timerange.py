import pytest

from heapwatch_viewer.timerange import TimeRange, Window


def test_relative_and_absolute_ends():
    assert TimeRange("now-6h", "now").seconds(100_000) == (100_000 - 6 * 3600, 100_000)
    assert TimeRange("1000000", "2000000").seconds(5) == (1000, 2000)


@pytest.mark.parametrize("start", ["yesterday", "now-6x", "-5", "", "now-99999999999d", "9" * 30, "²"])
def test_a_malformed_end_says_what_is_allowed(start):
    with pytest.raises(ValueError, match="now-6h"):
        TimeRange(start)


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match="empty"):
        TimeRange("now", "now-1h")


def test_window_is_aligned_and_never_finer_than_a_scrape():
    window = Window.of(TimeRange("now-5m"), 1000, 1_000_007)
    assert window.step == 15
    assert window.start % 15 == window.end % 15 == 0
    assert window.rate_interval == 60


def test_long_ranges_widen_the_step_and_the_rate_interval():
    window = Window.of(TimeRange("now-30d"), 600, 10_000_000)
    assert window.step == 30 * 86400 / 600
    assert window.rate_interval == window.step + 15
