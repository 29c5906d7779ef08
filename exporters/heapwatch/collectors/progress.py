"""Progress of training with the time of its last advance, and phases with the memory at their end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

from heapwatch.collectors.families import counter, gauges
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.runtime.failures import Failures, must_propagate
from heapwatch.runtime.labels import MAX_NAMES, OTHER, checked_name
from heapwatch.runtime.safe_point import SafePoint

if TYPE_CHECKING:
    from typing_extensions import Self

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

UNITS = ("step", "episode", "epoch", "generation")
_MAX_UNITS = 16
_PAUSES_SECONDS = 6 * 3600.0  # a pause counts for this time at least, for twice this time at most
_MOMENT_SECONDS = 1.0  # a checkpoint within this time after a phase belongs to it


class Progress(NamedTuple):
    """The reported progress: steps of any unit, and cycles; None if no cycles are reported."""

    steps: int = 0
    cycles: int | None = None


class ProgressCollector:
    """Counts steps and larger units. The time of the last progress is set on reading, not by the step."""

    name = "progress"

    def __init__(
        self, failures: Failures, safe_point: SafePoint, clock: Callable[[], float] = time.time
    ) -> None:
        self._failures = failures
        self._safe_point = safe_point
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self.on_progress: list[Callable[[str, int], None]] = []  # called with a unit except `step`, its total
        self._last_total = 0
        self._progress_at: float | None = None
        self._longest_pause = self._longest_before = 0.0
        self._counted_since = clock()

    def advance(self, unit: str, count: int = 1) -> None:
        """Add `count` to `unit`. Never raises: an invalid argument is counted as a failure."""
        try:
            if type(count) is not int or not 0 <= count < 2**63:
                count = _checked_count(count, unit)
            if unit == "step":
                self._safe_point.steps += count
                return
            if unit not in self._counts:
                checked_name("progress unit", unit)
                if len(self._counts) >= _MAX_UNITS:
                    raise ValueError(f"more than {_MAX_UNITS} units of progress; {unit!r} counts as 'other'")
        except BaseException as error:
            if must_propagate(error):
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
        if total != self._last_total:
            now = self._clock()
            if now - self._counted_since >= _PAUSES_SECONDS:
                self._longest_before, self._longest_pause, self._counted_since = self._longest_pause, 0.0, now
            if self._progress_at is not None:
                self._longest_pause = max(self._longest_pause, now - self._progress_at)
            self._last_total, self._progress_at = total, now

    def collect(self) -> Iterable[Metric]:
        """Yield the counts and the time of the last progress."""
        self.observe()
        counts = {"step": self._safe_point.steps, **self._counts}
        yield counter(
            "trainer_progress",
            "Steps, episodes, epochs and generations so far.",
            "unit",
            {unit: count for unit, count in counts.items() if count},
        )
        yield GaugeMetricFamily(
            "trainer_last_progress_timestamp_seconds",
            "Unix time at which training was last seen to advance.",
            self._progress_at,
        )
        yield GaugeMetricFamily(
            "trainer_longest_pause_seconds",
            "The longest time without progress in the last 6 to 12 hours.",
            None if self._progress_at is None else max(self._longest_before, self._longest_pause),
        )


class _PhaseRun(NamedTuple):
    """The last run of a phase; immutable, so that a scrape reads the values of one run."""

    runs: int
    seconds: float
    end_resident_bytes: int
    delta_bytes: int


class Phase:
    """One phase: a context manager and a decorator, nestable in itself, used by one thread at a time."""

    __slots__ = ("_current_run", "_name", "_phases")

    def __init__(self, phases: PhaseCollector, name: str) -> None:
        self._phases = phases
        self._name = name
        self._current_run: tuple[float, int, object] | None = None

    def __enter__(self) -> Self:
        self._current_run = perf_counter(), self._phases.begin(), self._current_run
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._current_run is None:
            return
        began, resident, self._current_run = self._current_run  # type: ignore[assignment]
        self._phases.finish(self._name, perf_counter() - began, resident)

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """Decorate a function: each call is a run of the phase."""

        @wraps(function)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            with Phase(self._phases, self._name):
                return function(*args, **kwargs)

        return run


class PhaseCollector:
    """Keeps the last run of each phase. The end of a phase is a safe point."""

    name = "phases"

    def __init__(self, failures: Failures, safe_point: SafePoint, memory: ResidentMemory) -> None:
        self.resident = memory.read
        self._last_phase = ("", 0.0)  # the last phase to end since one began, and when
        self.on_end: list[Callable[[str, int, int], None]] = []  # called with name, RSS, its change in bytes
        self._failures = failures
        self._safe_point = safe_point
        self._finished: dict[str, _PhaseRun] = {}
        self._names: set[str] = set()

    @property
    def just_ended(self) -> str:
        """The phase that ended within the last second, if none has begun since; else empty."""
        name, ended_at = self._last_phase
        return name if perf_counter() - ended_at < _MOMENT_SECONDS else ""

    def begin(self) -> int:
        """Begin a phase; returns the resident memory, in bytes."""
        self._last_phase = ("", 0.0)
        return self.resident()

    def phase(self, name: str) -> Phase:
        """A run of the phase `name`. An invalid name, or one above the limit, counts as `other`."""
        try:
            is_accepted = name in self._names
        except TypeError:  # not even hashable
            is_accepted = False
        return Phase(self, name if is_accepted else self._accept_name(name))

    def finish(self, name: str, seconds: float, began_resident: int) -> None:
        """Store the end of a run, and visit the safe point."""
        resident = self.resident()
        previous = self._finished.get(name)
        runs, total = (previous.runs, previous.seconds) if previous is not None else (0, 0.0)
        self._finished[name] = _PhaseRun(runs + 1, total + seconds, resident, resident - began_resident)
        if self._safe_point.due:
            self._safe_point.visit(stepping=False)
        for function in self.on_end:
            function(name, resident, resident - began_resident)
        self._last_phase = name, perf_counter()

    def collect(self) -> Iterable[Metric]:
        """Yield the last run of each phase."""
        finished = self._finished.copy()
        end, change = "RSS when the phase last ended.", "RSS change across the phase's last run."
        yield from gauges(
            "phase",
            finished,
            ("trainer_phase_end_resident_memory_bytes", end, lambda run: run.end_resident_bytes),
            ("trainer_phase_memory_delta_bytes", change, lambda run: run.delta_bytes),
        )
        duration = SummaryMetricFamily(
            "trainer_phase_duration_seconds", "Seconds spent in the phase.", labels=["phase"]
        )
        for name, run in finished.items():
            duration.add_metric([name], run.runs, run.seconds)
        yield duration

    def _accept_name(self, name: str) -> str:
        try:
            checked_name("phase", name)
            if len(self._names) >= MAX_NAMES:
                raise ValueError(f"more than {MAX_NAMES} phases; {name!r} and later ones count as 'other'")
        except ValueError as error:
            self._failures.record(self.name, "phase", error)
            return OTHER
        self._names.add(name)
        return name


def _checked_count(count: Any, unit: str) -> int:
    if isinstance(count, bool) or not 0 <= int(count) < 2**63:
        raise ValueError(f"progress of {count!r} {unit!r}; allowed: a whole number of at least 0")
    return int(count)
