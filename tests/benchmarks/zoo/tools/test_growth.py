"""What grew in every round, and by enough, most first."""

from benchmarks.zoo.tools.growth import least_bytes, steady


def looks(**series):
    return [{name: values[at] for name, values in series.items()} for at in range(4)]


def test_steady_growth_is_listed_most_first():
    told = steady(looks(small=[0, 1, 2, 3], large=[5, 10, 20, 30]), at_least=1)
    assert told == [("large", 25), ("small", 3)]


def test_a_round_without_growth_or_too_little_growth_is_no_finding():
    assert steady(looks(filled=[0, 9, 9, 9], sawtooth=[0, 9, 3, 12], still=[7, 7, 7, 7]), at_least=1) == []
    assert steady(looks(slow=[0, 1, 2, 3]), at_least=4) == []


def test_what_appears_later_counts_from_nothing():
    later = [{}, {"new": 1.0}, {"new": 2.0}, {"new": 3.0}]
    assert steady(later, at_least=1) == [("new", 3.0)]


def test_a_megabyte_a_minute_between_the_looks():
    assert least_bytes(100) == 1e6
