"""What grew in every round, and by enough, most first; growth without any tool."""

import os

import pytest

from benchmarks.cases.tools import growth
from benchmarks.cases.tools.growth import growth_per_minute, least_bytes, steady
from benchmarks.running import Outcome


def snapshots(**series):
    return [{name: values[at] for name, values in series.items()} for at in range(4)]


@pytest.mark.parametrize(
    ("seen", "at_least", "expected"),
    [
        (snapshots(small=[0, 1, 2, 3], large=[5, 10, 20, 30]), 1, [("large", 25), ("small", 3)]),
        (snapshots(filled=[0, 9, 9, 9], sawtooth=[0, 9, 3, 12], still=[7, 7, 7, 7]), 1, []),
        (snapshots(slow=[0, 1, 2, 3]), 4, []),
        ([{}, {"new": 1.0}, {"new": 2.0}, {"new": 3.0}], 1, [("new", 3.0)]),
    ],
    ids=["most first", "a round without growth", "too little", "what appears later counts from nothing"],
)
def test_what_grew_in_every_round_by_enough_is_listed(seen, at_least, expected):
    assert steady(seen, at_least=at_least) == expected


def test_a_megabyte_a_minute_between_the_evaluations():
    assert least_bytes(100) == 1e6


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Growth of a script that is read so many seconds after its start."""

    def measure(*seconds, ended=120.0):
        def run(*_arguments, poll, **_options):
            for second in seconds:
                poll(os.getpid(), second)
            return Outcome("", "Killed", None, ended)

        monkeypatch.setattr(growth, "run", run)
        return growth_per_minute(tmp_path / "train.py", tmp_path, 120)

    return measure


def test_growth_is_measured_from_the_first_late_evaluation_to_the_last(measured, monkeypatch):
    levels = iter([5e6, 10e6, 12e6, 14e6])
    monkeypatch.setattr(growth, "_resident", lambda _pid: next(levels))
    assert measured(10, 50, 80, 110) == pytest.approx(4e6)


def test_a_script_that_ends_early_or_is_seen_once_has_no_growth(measured):
    with pytest.raises(RuntimeError, match="ended after 90 s: Killed"):
        measured(10, 50, 80, ended=90)
    with pytest.raises(RuntimeError, match="looked at 1 times after 40% of 120 s"):
        measured(10, 20, 110)
