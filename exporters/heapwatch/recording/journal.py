"""Journal of a run: the training thread queues marks, and a separate thread passes them to sinks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from heapwatch.collectors.readings import Readings
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.objects.instances import Census
from heapwatch.recording.points import CYCLES, Point, point_of
from heapwatch.runtime.failures import Failures

# Least time between batches and between stored marks of one phase: bounds the cost of short phases.
_BATCH_SECONDS = 0.5
_SAMPLE_SECONDS = 15.0  # between points without a phase or a cycle
_STOP_SECONDS = 2.0
_MOST_WAITING = 1024


class Sink(Protocol):
    """Receives points, in the journal's thread; its errors are counted."""

    name: str

    def take(self, point: Point) -> None:
        """Take the next point."""

    def close(self) -> None:
        """Finish: no more points follow."""


class _Mark(NamedTuple):
    """A queued event. `name` is that of its phase, cycle or checkpoint.

    `levels` were read at the event itself, if a sink needs that; other marks use the levels of their batch.
    """

    time: float
    census: Census
    event: str
    name: str
    resident_bytes: int
    progress: dict[str, float]
    phase: str = ""
    delta_bytes: int | None = None
    large: tuple[tuple[str, float], ...] = ()
    levels: Readings | None = None


class Journal:
    """Passes the points of a run to sinks.

    At the end of a phase or a cycle the training thread only reads the resident memory and appends a mark to
    a queue. The journal's own thread adds the latest samples. If sinks stay slower than training, the queue
    drops its oldest marks. For a cycle that a sink needs exactly, such as one with a report, the training
    thread also reads the latest samples.

    Args:
        failures: counts the errors of sinks.
        resident: reads the resident memory, in bytes.
        read: returns the latest levels; `read(True)` also renews costly ones such as the process tree.
        count: returns the latest count of objects; called at the event, since a later count does not belong
            to it.

    """

    def __init__(
        self,
        failures: Failures,
        resident: Callable[[], int],
        read: Callable[[bool], Readings],
        count: Callable[[], Census] = Census,
    ) -> None:
        self.sinks: tuple[Sink, ...] = ()
        self._failures = failures
        self._resident = resident
        self._read = read
        self._count = count
        self._marks: deque[_Mark] = deque(maxlen=_MOST_WAITING)
        self._progress: dict[str, float] = {}
        self._unit = ""
        self._is_due: tuple[Callable[[str, int], bool], ...] = ()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add_sink(self, sink: Sink, is_due: Callable[[str, int], bool] | None = None) -> None:
        """Pass points to `sink` from now on; the first one at once, in the calling thread.

        `is_due(unit, total)` returns whether the sink needs the end of this cycle. The journal then passes it
        on without delay, with levels read at that moment, and never skips it.
        """
        if self._stopped.is_set():
            return
        self._pass_on(self._mark("start"), True, (sink,))
        self.sinks = (*self.sinks, sink)
        self._is_due += () if is_due is None else (is_due,)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="heapwatch-journal", daemon=True)
            self._thread.start()

    def phase_ended(self, name: str, resident_bytes: int, delta_bytes: int) -> None:
        """Queue the end of a phase."""
        if self.sinks:
            self._enqueue(self._mark("phase", name, resident_bytes, phase=name, delta_bytes=delta_bytes))

    def checkpoint(self, label: str, phase: str, resident_bytes: int) -> None:
        """Queue a checkpoint, with the phase that ended just before."""
        if self.sinks:
            self._enqueue(self._mark("checkpoint", label, resident_bytes, phase=phase))

    def progressed(self, unit: str, total: int) -> None:
        """Queue that `total` of `unit` are completed; it is a cycle unless a larger unit is counted."""
        if not self.sinks or unit not in CYCLES or total == self._progress.get(unit):
            return
        self._progress = {**self._progress, unit: total}
        is_cycle = not self._unit or CYCLES.index(unit) <= CYCLES.index(self._unit)
        if is_cycle:
            self._unit = unit
        levels = None
        due_flags = [is_due(unit, total) for is_due in self._is_due]  # calls all: each keeps count
        if any(due_flags):
            try:
                levels = self._read(False)
            except Exception as error:
                self._failures.record("journal", "levels", error)
        if is_cycle or levels is not None:
            self._enqueue(self._mark("cycle" if is_cycle else "sample", unit, levels=levels))

    def found_large(self, large: tuple[tuple[str, float], ...]) -> None:
        """Queue class and bytes of the largest objects."""
        if self.sinks:
            self._enqueue(self._mark("sample", "large", large=large))

    def stop(self) -> None:
        """Pass on the queued marks and close the sinks. A second call does nothing."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._wake.set()
        self._hurry.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def abandon(self) -> None:
        """Stop in a forked child, since the sinks belong to the parent."""
        self.sinks = ()
        self._stopped = threading.Event()
        self._stopped.set()

    def _mark(self, event: str, name: str = "", resident_bytes: int | None = None, **fields: Any) -> _Mark:
        resident = self._resident() if resident_bytes is None else resident_bytes
        return _Mark(time.time(), self._count(), event, name, resident, self._progress, **fields)

    def _enqueue(self, mark: _Mark) -> None:
        self._marks.append(mark)
        if mark.levels is not None:
            self._hurry.set()
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        costly_read_at = time.monotonic()
        while not self._stopped.is_set():
            woken = self._wake.wait(_SAMPLE_SECONDS)
            self._wake.clear()
            allow_capture()
            now = time.monotonic()
            reads_costly = now - costly_read_at >= _SAMPLE_SECONDS
            costly_read_at = now if reads_costly else costly_read_at
            if not woken:
                self._enqueue(self._mark("sample"))
            self._drain(reads_costly)
            self._hurry.wait(_BATCH_SECONDS)
            self._hurry.clear()
        self._drain(True)
        for sink in self.sinks:
            try:
                sink.close()
            except BaseException as error:
                self._failures.record("journal", f"{sink.name}, closing", error)

    def _drain(self, costly: bool) -> None:
        """Pass on the queued marks; of one phase or cycle only the latest and those `_BATCH_SECONDS` apart.

        Marks that a sink needs are never skipped. On a busy machine a late batch may have several cycles.
        """
        marks = [self._marks.popleft() for _ in range(len(self._marks))]
        selected: list[_Mark] = []
        following: dict[tuple[str, str], float] = {}
        for mark in reversed(marks):
            key = (mark.event, mark.name)
            is_apart = key not in following or mark.time <= following[key] - _BATCH_SECONDS
            if is_apart or mark.levels is not None:
                following[key] = mark.time
                selected.append(mark)
        for mark in reversed(selected):
            self._pass_on(mark, costly, self.sinks)
            costly = False

    def _pass_on(self, mark: _Mark, costly: bool, sinks: tuple[Sink, ...]) -> None:
        try:
            point = point_of(
                self._read(costly) if mark.levels is None else mark.levels,
                time=round(mark.time, 3),
                event=mark.event,
                objects=dict(mark.census.counts),
                counted_at={name: round(count_time, 3) for name, count_time in mark.census.at.items()},
                resident_bytes=mark.resident_bytes,
                phase=mark.phase,
                delta_bytes=mark.delta_bytes,
                progress=mark.progress,
                large=mark.large,
            )
        except BaseException as error:
            self._failures.record("journal", "levels", error)
            return
        for sink in sinks:
            try:
                if point is not None:
                    sink.take(point)
            except BaseException as error:
                self._failures.record("journal", sink.name, error)
