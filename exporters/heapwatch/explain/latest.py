"""The newest explanation, those of just before it, and what the last cleanup changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter

from heapwatch.explain.cleaned import Cleaned
from heapwatch.explain.findings import Explanation
from heapwatch.explain.thresholds import NOISE_BYTES, TOO_EARLY_SECONDS
from heapwatch.judge.verdict import SERIOUS
from heapwatch.text.numbers import size, wait

# As a program ends, it frees what leaked: a leak of so many seconds before stays the verdict.
_ENDING_SECONDS = 20.0  # the longest time between two evaluations
_MOST_RECENT = 8  # more than there are evaluations in that time


class LatestExplanation:
    """Keeps the newest explanation.

    Attributes:
        explanation: the newest.

    """

    def __init__(self) -> None:
        self.explanation = Explanation("too early", 0.0, 0.0, 0.0)
        self._recent: deque[tuple[float, Explanation]] = deque(maxlen=_MOST_RECENT)
        self._cleaned: Cleaned | None = None

    def add(self, explanation: Explanation, held_bytes: float, *, is_final: bool = False) -> None:
        """Take a new explanation, made when the process held so many bytes; remember a final one only."""
        if not is_final:
            self.explanation = explanation
        self._recent.append((held_bytes, explanation))

    def begin_anew(self, cleaned: Cleaned) -> None:
        """Forget the explanations of before a cleanup: it gave back what they are about."""
        self._cleaned = cleaned
        self._recent.clear()
        before = cleaned.before
        early = Explanation("too early", before.seconds, 0.0, 0.0, leaks=before.leaks)
        self.explanation = self.with_cleanup(early, cleaned.at, lambda: cleaned.left)

    def with_cleanup(
        self, explanation: Explanation, now: float, resident: Callable[[], float]
    ) -> Explanation:
        """The explanation with what is known of the last cleanup."""
        if self._cleaned is None:
            return explanation
        return replace(explanation, after_cleanup=self._cleaned.text(now, resident()))

    def with_recent_leak(self) -> Explanation:
        """The newest explanation, or a leak of just before, when the process held most."""
        since = self.explanation.seconds - _ENDING_SECONDS
        recent = tuple(self._recent)  # the thread of the search may be adding one
        serious = [entry for entry in recent if entry[1].verdict in SERIOUS and entry[1].seconds >= since]
        return max(reversed(serious), key=itemgetter(0))[1] if serious else self.explanation

    def conclude(self, now: float, resident: Callable[[], float]) -> Explanation:
        """The explanation of the whole run: what was not known yet is not announced for later."""
        explanation = self.with_recent_leak()
        if explanation.verdict == "too early":
            rate, named = explanation.growth_bytes_per_minute, explanation.findings
            detail = "It ended; only a longer run can tell."
            if explanation.seconds < TOO_EARLY_SECONDS:
                named, detail = (), f"It ended; a verdict needs about {wait(TOO_EARLY_SECONDS)}."
            elif rate / 60 * explanation.seconds >= NOISE_BYTES:
                detail = f"Memory grew by {size(rate)}/min. {detail}"
            named = tuple(finding for finding in named if finding.kind != "native" or finding.site)
            explanation = replace(explanation, detail=detail, findings=named, time_left=None)
        self.explanation = self.with_cleanup(explanation, now, resident)
        return self.explanation
