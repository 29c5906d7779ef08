"""What a panel says without data follows from what it asks first."""

import pytest

from heapwatch_dashboards.empty import meaning
from tests.dashboards.documents import DOCUMENTS, panels


@pytest.mark.parametrize(
    ("dashboard", "title", "says"),
    [
        ("trainer", "Resident memory by role", "No trainer now"),
        ("trainer", "Verdict", "No trainer now"),
        ("trainer", "What grows, where, and what to do", "Nothing known to grow"),
        ("fleet", "Trainers by verdict", "No trainer yet. Add one:  heapwatch run train.py"),
        ("fleet", "Ended in this range", "No trainer ended in this range"),
        ("trainer", "Time until the memory limit", "Too early, or not within 3 days"),
        ("trainer", "Growth per minute", "No growth known"),
        ("trainer", "Time left", "No limit known"),
        ("trainer", "Progress", "No progress counted"),
        ("phases", "Memory at phase end by cycle", "No phases watched"),
        ("world", "Body growth per minute by type", "No growth known"),
        ("world", "In the world now", "No physics world, entities or event lists watched"),
        ("world", "Bodies by type", "No physics world watched"),
        ("buffers", "Buffers now", "No buffers watched"),
        ("buffers", "When all are full", "No bounded buffer"),
        ("gpu", "Device memory explained", "No GPU now"),
        ("gpu", "Allocated", "No torch on a GPU now"),
        ("gpu", "Growth per minute", "No growth known"),
        ("gpu", "Time to full", "No GPU now"),
        ("alerts", "Last cleanup without effect", "None known"),
        ("stack", "Targets", "No target"),
    ],
)
def test_an_empty_panel_says_what_that_means(dashboard: str, title: str, says: str) -> None:
    (panel,) = [panel for panel in panels(DOCUMENTS[f"heapwatch-{dashboard}"]) if panel["title"] == title]
    assert panel["fieldConfig"]["defaults"]["noValue"] == says


def test_what_nobody_thought_of_has_a_meaning() -> None:
    assert meaning("something_new").says == "No trainer now"
