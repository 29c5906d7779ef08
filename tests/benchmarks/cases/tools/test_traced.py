"""What grew in every round, and by enough, most first."""

import pytest

from benchmarks.cases.tools.traced import steady


def snapshots(**series):
    return [{(name, 1): values[at] for name, values in series.items()} for at in range(4)]


@pytest.mark.parametrize(
    ("seen", "at_least", "expected"),
    [
        (snapshots(small=[0, 1, 2, 3], large=[5, 10, 20, 30]), 1, ["large", "small"]),
        (snapshots(filled=[0, 9, 9, 9], sawtooth=[0, 9, 3, 12], still=[7, 7, 7, 7]), 1, []),
        (snapshots(slow=[0, 1, 2, 3]), 4, []),
        ([{}, {("new", 1): 1}, {("new", 1): 2}, {("new", 1): 3}], 1, ["new"]),
    ],
    ids=["most first", "a round without growth", "too little", "what appears later counts from nothing"],
)
def test_what_grew_in_every_round_by_enough_is_listed(seen, at_least, expected):
    assert [file for file, _ in steady(seen, at_least=at_least)] == expected
