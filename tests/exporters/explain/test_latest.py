"""Which explanation stays."""

from __future__ import annotations

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
