"""The verdict of a trainer's own judge on a recorded run."""

from __future__ import annotations

from typing import NamedTuple

from heapwatch.explain.findings import Explanation
from heapwatch.explain.received import explanation_of
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.verdict import WORDS
from heapwatch.recording.points import Run


class TrainerVerdict(NamedTuple):
    """The last recorded explanation of a run; None if there is none that can be read."""

    explanation: Explanation | None

    def leaks(self, component: Component) -> bool | None:
        """Whether a component leaks; None without a verdict on it: then the cycles decide."""
        if self.explanation is None:
            return None
        if component in {leak.component for leak in self.explanation.leaks}:
            return True
        return False if self.denies(component) else None

    def denies(self, component: Component) -> bool:
        """Whether the verdict excludes a leak: of anything if nothing leaks, of memory if others leak."""
        if self.explanation is None:
            return False
        leaks = self.explanation.leaks
        return self.explanation.verdict != "leak" or (component == MEMORY and bool(leaks))


def trainer_verdict_of(run: Run) -> TrainerVerdict:
    """Return the verdict in the recorded explanation."""
    try:
        explanation = None if run.explanation is None else explanation_of(run.explanation)
    except ValueError:
        explanation = None
    return TrainerVerdict(explanation if explanation is not None and explanation.verdict in WORDS else None)
