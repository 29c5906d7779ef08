"""What a panel says without data follows from what it asks first."""

import pytest

from heapwatch.dashboards.empty import meaning
from tests.dashboards.documents import DOCUMENTS, panels


@pytest.mark.parametrize(
    ("dashboard", "title", "says"),
    [
        ("trainer", "Suspects", "No suspect"),
        ("trainer", "Resident memory by role", "No trainer now"),
        ("trainer", "Verdict", "No trainer now"),
        ("trainer", "What holds it", "No growing path"),
        ("trainer", "Time until the memory limit", "Too early, or not within 3 days"),
        ("trainer", "Growth per minute", "No growth known"),
        ("trainer", "Time to limit", "No limit known"),
        ("trainer", "Progress", "No progress counted"),
        ("phases", "Memory at phase end by cycle", "No cycles counted"),
        ("world", "Body growth per minute", "No growth known"),
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
