"""The explanation that stays at the end of a run.

As a program ends, its functions return and free their objects, which hides a leak.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from heapwatch.analysis.verdict import WORDS
from heapwatch.explain.findings import Explanation

_ENDING_SECONDS = 10.0
_FALLEN = 0.99  # below this share of its peak memory has fallen; less is noise
_MOST_EVALUATIONS = 8  # more than are made in those seconds


class _Evaluation(NamedTuple):
    time: float
    held: float
    explanation: Explanation


class Conclusion:
    """Keeps the last explanations, and chooses one.

    If memory has fallen within the last ten seconds, it is the one from before the fall, unless its verdict
    is less serious. A leak whose objects are gone also stays while memory has not fallen: the allocator keeps
    it. What was freed earlier, as by a cleanup, is freed.
    """

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float]] = deque()
        self._evaluations: deque[_Evaluation] = deque(maxlen=_MOST_EVALUATIONS)

    def read(self, time: float, held: float) -> None:
        """Add the bytes that are held at a time in seconds."""
        self._readings.append((time, held))
        while len(self._readings) > 1 and self._readings[1][0] < time - _ENDING_SECONDS:
            self._readings.popleft()

    def explained(self, time: float, held: float, explanation: Explanation) -> None:
        """Add an explanation, with the bytes that it explains."""
        self._evaluations.append(_Evaluation(time, held, explanation))

    def explanation(self) -> Explanation | None:
        """The explanation that stays; None before the first."""
        evaluations = list(self._evaluations)
        if not evaluations:
            return None
        ends = (self._before_end(evaluations), evaluations[-1])
        return max(ends, key=lambda one: WORDS.index(one.explanation.verdict)).explanation

    def _before_end(self, evaluations: list[_Evaluation]) -> _Evaluation:
        """The last that was made before the program freed its objects, if it has done so."""
        last, fallen = evaluations[-1], self._fallen_since()
        before = next((one for one in reversed(evaluations) if one.time < fallen), last)
        if before is not last:
            return before
        earlier = evaluations[-2:][0]
        is_kept = last.held >= _FALLEN * earlier.held
        named = {found.path for found in last.explanation.findings}
        leaks = {found.path for found in earlier.explanation.findings if found.is_leak and found.path}
        return earlier if is_kept and leaks - named else last

    def _fallen_since(self) -> float:
        """The time of the first reading after the peak of the last seconds; infinity if there is none."""
        since = float("inf")
        readings = list(self._readings)
        peak = max((held for _, held in readings), default=0.0)
        for time, held in reversed(readings):
            if held >= _FALLEN * peak:
                break
            since = time
        return since
