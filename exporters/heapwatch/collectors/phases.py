"""Phases of the training cycle: their duration, and the memory at their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.labels import MAX_NAMES, OTHER, checked_name
from heapwatch.runtime.safe_point import SafePoint

if TYPE_CHECKING:
    from typing_extensions import Self

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Finished(NamedTuple):
    """The last run of a phase; immutable, so that a scrape reads the values of one run."""

    runs: int
    seconds: float
    end_resident_bytes: int
    delta_bytes: int


class Phase:
    """One phase: a context manager and a decorator, nestable in itself, used by one thread at a time."""

    __slots__ = ("_name", "_open", "_phases")

    def __init__(self, phases: PhaseCollector, name: str) -> None:
        self._phases = phases
        self._name = name
        self._open: tuple[float, int, object] | None = None

    def __enter__(self) -> Self:
        self._open = perf_counter(), self._phases.resident(), self._open
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open is None:
            return
        began, resident, self._open = self._open  # type: ignore[assignment]
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
        self.on_end: list[Callable[[str, int, int], None]] = []  # given name, RSS and its change, in bytes
        self._failures = failures
        self._safe_point = safe_point
        self._finished: dict[str, Finished] = {}
        self._known: set[str] = set()

    def phase(self, name: str) -> Phase:
        """A run of the phase `name`. A name that is not allowed, or over the limit, counts as `other`."""
        try:
            known = name in self._known
        except TypeError:  # not even hashable
            known = False
        return Phase(self, name if known else self._admitted(name))

    def finish(self, name: str, seconds: float, began_resident: int) -> None:
        """Store the end of a run, and visit the safe point."""
        resident = self.resident()
        before = self._finished.get(name)
        runs, total = (before.runs, before.seconds) if before is not None else (0, 0.0)
        self._finished[name] = Finished(runs + 1, total + seconds, resident, resident - began_resident)
        if self._safe_point.due:
            self._safe_point.visit(stepping=False)
        for function in self.on_end:
            function(name, resident, resident - began_resident)

    def collect(self) -> Iterable[Metric]:
        """Yield the last run of each phase."""
        resident = GaugeMetricFamily(
            "trainer_phase_end_resident_memory_bytes", "RSS when the phase last ended.", labels=["phase"]
        )
        delta = GaugeMetricFamily(
            "trainer_phase_memory_delta_bytes", "RSS change across the phase's last run.", labels=["phase"]
        )
        duration = SummaryMetricFamily(
            "trainer_phase_duration_seconds", "Seconds spent in the phase.", labels=["phase"]
        )
        for name, finished in list(self._finished.items()):
            resident.add_metric([name], finished.end_resident_bytes)
            delta.add_metric([name], finished.delta_bytes)
            duration.add_metric([name], finished.runs, finished.seconds)
        yield from (resident, delta, duration)

    def _admitted(self, name: str) -> str:
        try:
            checked_name("phase", name)
            if len(self._known) >= MAX_NAMES:
                raise ValueError(f"more than {MAX_NAMES} phases; {name!r} and later ones count as 'other'")
        except ValueError as error:
            self._failures.record(self.name, "phase", error)
            return OTHER
        self._known.add(name)
        return name
