"""What pages say in words: the verdicts are those of the contract, and a panel without data says why."""

import re

import pytest

from heapwatch.judge.verdict import WORDS
from heapwatch_dashboards.colors import CODES, VERDICTS
from tests.dashboards.asking import panel

OF_ALERTS = {"over a limit", "not judged", "down or stalled"}


def test_the_words_of_a_verdict_are_those_of_the_contract() -> None:
    assert CODES.keys() == set(WORDS) | OF_ALERTS
    assert {word for word, _ in VERDICTS.values()} == CODES.keys()


def test_every_word_of_a_verdict_is_explained_in_fleet() -> None:
    explained = re.findall(r"\n\n([a-z -]+): ", panel("fleet", "Verdicts")["description"])
    assert set(explained) == CODES.keys()


@pytest.mark.parametrize(
    ("dashboard", "title", "says"),
    [
        ("trainer", "Verdict", "No trainer now"),
        ("trainer", "What grows, where, and what to do", "Nothing known to grow"),
        ("fleet", "Trainers by verdict", "No trainer yet. Add one:  heapwatch run train.py"),
        ("trainer", "Time until the memory limit", "Too early, or not within a week"),
        ("trainer", "Growth per minute", "No growth known"),
        ("machine", "Verdict", "No machine now"),
        ("machine", "Memory available", "No machine now"),
        ("machine", "Groups of processes", "No machine yet. Watch one:  heapwatch node"),
        ("machine", "Processes killed by the kernel", "No kill counted in this range"),
        ("world", "Bodies by type", "No physics world watched"),
        ("buffers", "When all are full", "No bounded buffer"),
        ("buffers", "Buffers now", "No buffers watched"),
        ("gpu", "Allocated", "No torch on a GPU now"),
        ("stack", "Targets", "No target"),
    ],
)
def test_an_empty_panel_says_what_that_means(dashboard: str, title: str, says: str) -> None:
    assert panel(dashboard, title)["fieldConfig"]["defaults"]["noValue"] == says
