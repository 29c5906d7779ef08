"""The last hours of a trainer's series with their verdicts, for the console and `/performance_status`."""

from __future__ import annotations

import math
import time as clock
from array import array

from heapwatch.analysis.judge import HELD_EVALUATIONS, Verdicts, judge
from heapwatch.analysis.observed import OBSERVED, Series, observed
from heapwatch.analysis.readings import Readings
from heapwatch.analysis.timeline import STEP_SECONDS

_MOST_EVALUATIONS = 480  # four hours
_SHARE = 0.002  # share of the time for verdicts, which take 60 ms for 30 levels over four hours
_MOST_SERIES = 500  # further series are not judged


class LiveVerdicts:
    """Keeps a sample of every series each 30 seconds (4 KB a series) and judges them on request."""

    def __init__(self) -> None:
        self._times: array[float] = array("d")
        self._series: dict[Series, array[float]] = {}
        self._judged: Verdicts | None = None
        self._due = -math.inf

    def observe(self, time: float, readings: Readings) -> None:
        """Add the readings of `time` (seconds of one clock); all are dropped if the clock was set back."""
        if self._times and time < self._times[-1]:
            self._times, self._series, self._due = array("d"), {}, -math.inf
        if self._times and self._evaluation(time) == self._evaluation(self._times[-1]):
            self._drop_last()  # only the newest sample before an evaluation counts
        if time >= self._due:
            self._judged = None
        values = {
            Series(name, tuple(sorted(labels.items()))): value
            for name in OBSERVED
            for labels, value in readings.samples(name)
        }
        many = len(self._times)
        for series in values:
            if series not in self._series and len(self._series) < _MOST_SERIES:
                self._series[series] = array("d", [math.nan]) * many
        self._times.append(time)
        for series, column in self._series.items():
            column.append(values.get(series, math.nan))
        if many >= _MOST_EVALUATIONS + _MOST_EVALUATIONS // 8:
            self._forget(many + 1 - _MOST_EVALUATIONS)

    def verdicts(self) -> Verdicts:
        """The verdicts on the samples so far; they may be a little older to save time."""
        if self._judged is None:
            began = clock.thread_time()
            start, many = 0.0, 0
            if self._times:
                # After a gap of days the evaluations before it would be too many.
                start = max(self._times[0], self._times[-1] - 2 * _MOST_EVALUATIONS * STEP_SECONDS)
                many = math.ceil((self._times[-1] - start) / STEP_SECONDS) + 1
            samples = {
                series: [pair for pair in zip(self._times, column, strict=True) if not math.isnan(pair[1])]
                for series, column in self._series.items()
            }
            self._judged = judge(observed(samples, start, many), since=many - HELD_EVALUATIONS)
            self._due = start + (many - 1) * STEP_SECONDS + (clock.thread_time() - began) / _SHARE
        return self._judged

    def _evaluation(self, time: float) -> int:
        return math.ceil((time - self._times[0]) / STEP_SECONDS)

    def _drop_last(self) -> None:
        for column in (self._times, *self._series.values()):
            column.pop()

    def _forget(self, many: int) -> None:
        del self._times[:many]
        for series, column in list(self._series.items()):
            del column[:many]
            if all(map(math.isnan, column)):
                del self._series[series]
