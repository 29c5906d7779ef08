"""Which explanation stays."""

from __future__ import annotations

import pytest

from heapwatch.explain.findings import Explanation
from heapwatch.explain.latest import LatestExplanation


def test_what_stays_at_the_end_is_chosen_while_another_explanation_is_added():
    explanations = LatestExplanation()

    class Judged:
        seconds = 0.0

        @property
        def verdict(self) -> str:
            explanations.add(Explanation("healthy", 0.0, 0.0, 0.0), 0.0)
            return "leak"

    judged = Judged()
    explanations.add(judged, 1.0, is_final=True)
    assert explanations.with_recent_leak() is judged


@pytest.mark.parametrize(
    ("rate", "detail"),
    [
        (70e6, "Memory grew by 70 MB/min. It ended; only a longer run can tell."),
        (200e3, "It ended; only a longer run can tell."),
    ],
)
def test_growth_that_is_not_judged_when_a_run_ends_is_still_told(rate, detail):
    explanations = LatestExplanation()
    explanations.explanation = Explanation("too early", 120.0, rate, 0.0)
    assert explanations.conclude(120.0, lambda: 0).detail == detail
