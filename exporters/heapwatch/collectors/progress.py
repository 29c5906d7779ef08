"""Progress of training, and when it last advanced."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.runtime.failures import Failures, is_trainers
from heapwatch.runtime.labels import OTHER, checked_name
from heapwatch.runtime.safe_point import SafePoint

UNITS = ("step", "episode", "epoch", "generation")
_MAX_UNITS = 16


class Progress(NamedTuple):
    """The reported progress: steps of any unit, and cycles; None if no cycles are reported."""

    steps: int = 0
    cycles: int | None = None


class ProgressCollector:
    """Counts steps and larger units. Readers, and not the step, store the time of the last progress."""

    name = "progress"

    def __init__(
        self, failures: Failures, safe_point: SafePoint, clock: Callable[[], float] = time.time
    ) -> None:
        self._failures = failures
        self._safe_point = safe_point
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self.on_progress: list[Callable[[str, int], None]] = []  # given a unit, not `step`, and its total
        self._seen = 0
        self._moved_at: float | None = None
        self._longest_pause = 0.0

    def advance(self, unit: str, count: int = 1) -> None:
        """Add `count` to `unit`. Never raises: an invalid argument is counted as a failure."""
        try:
            if type(count) is not int or not 0 <= count < 2**63:
                count = _whole(count, unit)
            if unit == "step":
                self._safe_point.steps += count
                return
            if unit not in self._counts:
                checked_name("progress unit", unit)
                if len(self._counts) >= _MAX_UNITS:
                    raise ValueError(f"more than {_MAX_UNITS} units of progress; {unit!r} counts as 'other'")
        except BaseException as error:
            if is_trainers(error):
                raise
            self._failures.record(self.name, "progress", error)
            unit, count = OTHER, 1
        self._counts[unit] += count
        for function in self.on_progress:
            function(unit, self._counts[unit])

    def so_far(self) -> Progress:
        """Steps of any unit, and cycles: the slowest unit of generations, epochs and episodes."""
        counts = self._counts.copy()
        cycles = next((counts[unit] for unit in reversed(UNITS[1:]) if unit in counts), None)
        return Progress(self._safe_point.steps + sum(counts.values()), cycles)

    def observe(self) -> None:
        """Store the time if a count advanced since the last call."""
        total = self._safe_point.steps + sum(list(self._counts.values()))
        if total != self._seen:
            now = self._clock()
            if self._moved_at is not None:
                self._longest_pause = max(self._longest_pause, now - self._moved_at)
            self._seen, self._moved_at = total, now

    def collect(self) -> Iterable[Metric]:
        """Yield the counts and the time of the last progress."""
        self.observe()
        progress = CounterMetricFamily(
            "trainer_progress", "Steps, episodes, epochs and generations so far.", labels=["unit"]
        )
        for unit, count in {"step": self._safe_point.steps, **self._counts}.items():
            if count:
                progress.add_metric([unit], count)
        moved = GaugeMetricFamily(
            "trainer_last_progress_timestamp_seconds", "Unix time at which training was last seen to advance."
        )
        pause = GaugeMetricFamily(
            "trainer_longest_pause_seconds", "The longest time without progress so far."
        )
        if self._moved_at is not None:
            moved.add_metric([], self._moved_at)
            pause.add_metric([], self._longest_pause)
        yield from (progress, moved, pause)


def _whole(count: Any, unit: str) -> int:
    if isinstance(count, bool) or not 0 <= int(count) < 2**63:
        raise ValueError(f"progress of {count!r} {unit!r}; allowed: a whole number of at least 0")
    return int(count)
