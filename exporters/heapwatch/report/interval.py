"""Logs a memory report at regular intervals of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heapwatch.measure.process.own_time import own_time
from heapwatch.recording.points import CYCLES, Pace, Point, Run
from heapwatch.report.document import finding_lines, leak_line, trend_lines, verdict
from heapwatch.report.findings import Report, analyse
from heapwatch.runtime.labels import is_whole
from heapwatch.text.numbers import from_to, size, size_change
from heapwatch.text.terminal import Block

log = logging.getLogger("heapwatch")

_PACE = 5e-3  # after a month, with a cycle each second, 2,000 cycles
_WIDTH = 60
_MOST_ROWS = 100  # of the trend
_MOST_SHARE = 0.2  # of the time for reports


class MemoryReport:
    """Keeps points of a run, at the intervals of `Pace`, and logs reports on them.

    Logs a report every `interval` cycles of `unit`: `generation`, `epoch` or `episode`; with `trend`, also
    the trend across cycles. `explain` returns the trainer's explanation as a JSON object. `leak` is the
    leak of the whole run in one line after its end; empty without one.

    Raises:
        ValueError: an invalid interval or unit.

    """

    name = "memory_report"

    def __init__(
        self,
        name: str,
        interval: int,
        unit: str,
        explain: Callable[[], Mapping[str, Any] | None] = lambda: None,
        *,
        trend: bool = False,
    ) -> None:
        if not is_whole(interval):
            raise ValueError(f"memory_report_interval must be a whole number above 0, got {interval!r}")
        if unit not in CYCLES:
            raise ValueError(f"memory_report_interval counts {', '.join(CYCLES)}, got {unit!r}")
        self._trainer = name
        self._explain = explain
        self._interval = interval
        self._unit = unit
        self._trend = trend
        self._reported_cycles = self._latest_cycles = 0
        self._rests_until = 0.0
        self.leak = ""
        self._pace = Pace(_PACE)
        self._points: list[Point] = []

    def is_due(self, unit: str, total: int) -> bool:
        """Whether a report is due at the end of this cycle; false while reports exceed their time share."""
        if unit != self._unit:
            return False
        previous, self._latest_cycles = self._latest_cycles, total
        return total // self._interval > previous // self._interval and time.monotonic() >= self._rests_until

    def take(self, point: Point) -> None:
        """Keep the point, and log a report when one is due."""
        cycles = int(point.progress.get(self._unit, 0))
        if self._pace.keeps(point):
            self._points.append(point)
        if (
            point.event in ("cycle", "sample")
            and cycles // self._interval > self._reported_cycles // self._interval
        ):
            self._reported_cycles, began = cycles, own_time()
            report = self._report(self._points)
            lines = interval_lines(report, self._unit, cycles)
            log.info("%s", Block([*lines, *(trend_lines(report, _MOST_ROWS) if self._trend else ())]))
            if report.finding is not None:
                log.warning("%s", Block(["LEAK FOUND:", *finding_lines(report.finding, report.unit)]))
            self._rests_until = time.monotonic() + (own_time() - began) * (1 / _MOST_SHARE - 1)

    def close(self) -> None:
        """Note the leak, and forget the points."""
        points, self._points = self._points, []
        if points:
            self.leak = leak_line(self._report(points))

    def _report(self, points: Sequence[Point]) -> Report:
        run = Run(self._trainer, tuple(points), explanation=self._explain())
        return analyse(run, unit=self._unit)


def interval_lines(report: Report, unit: str, cycles: int) -> Block:
    """The lines of one report: memory in use, growth, suspected leaks."""
    current, memory = report.current, report.memory
    line = "=" * _WIDTH
    sizes = {"process (RSS)": current.resident_bytes}
    sizes |= {f"buffer {name}": buffer.nbytes for name, buffer in current.buffers.items()}
    sizes |= dict(sorted(current.sizes.items(), key=lambda named: named[1], reverse=True))
    judgements = {"process (RSS)": memory} | report.sizes
    lines = ["", line, f"Memory Report - {unit.capitalize()} {cycles}", line, "", "Current Memory Usage:"]
    lines += [f"  {name:<32} {size(nbytes):>12}" for name, nbytes in sizes.items()]
    lines += ["", "Memory Growth:"]
    lines += [
        f"  {name:<32} {size_change(judgement.change):>12} ({size_change(judgement.per_cycle)}/{report.unit})"
        for name, judgement in judgements.items()
        if judgement.change
    ]
    if report.objects:
        lines += ["", "Object Count Changes:"]
        lines += [
            f"  {name:<24} {from_to(judgement.baseline, judgement.current):>24}  {verdict(judgement)}"
            for name, judgement in report.objects.items()
        ]
    leaking = [name for name, judgement in report.sizes.items() if judgement.verdict == "leak"]
    lines += [line]
    if leaking:
        lines += ["", f"WARNING: Potential memory leaks detected in: {leaking}"]
    return Block(lines)
