"""Finds the leak of a recorded run: its objects, phase, first cycle and rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from heapwatch.judge.component import Component
from heapwatch.recording.points import Buffer, Point
from heapwatch.report.cycles import Cycles, reader
from heapwatch.report.judgement import Judgement, rate_text
from heapwatch.report.since import Points
from heapwatch.report.trainer_verdict import TrainerVerdict

_CLEAR_SHARE = 0.8  # of a rise, in one phase
_LEAST_GROWTH = 1e5  # bytes a cycle, above the noise of a process that stands still
_FEWEST_COUNTS = 3  # counts during a rise that are needed to determine its start
_APART = 2  # most cycles between the starts of two rises with one cause
_SEEN_SHARE = 0.5  # least share of a rise that must be counted at the ends of phases to name one


@dataclass(frozen=True)
class RunLeak:
    """The leak of a run. `phase` is empty if none dominates.

    `past_bound` has the buffers above their declared bound, `graphs` the number of stored tensors per buffer
    that keep their autograd graph.
    """

    phase: str
    memory_bytes_per_cycle: float
    since: int
    objects: dict[str, Judgement]
    sizes: dict[str, Judgement]
    past_bound: dict[str, Buffer]
    graphs: dict[str, float]

    @property
    def growth_bytes_per_cycle(self) -> float:
        """Growth of the process; if it does not grow, that of the leaking named objects."""
        return self.memory_bytes_per_cycle or sum(judgement.per_cycle for judgement in self.sizes.values())


def find_leak(
    cycles: Cycles,
    verdict: TrainerVerdict,
    memory: Judgement,
    objects: dict[str, Judgement],
    sizes: dict[str, Judgement],
    histories: Mapping[str, Points],
) -> RunLeak | None:
    """The leak of a run with its phase, its growth and its beginning; None if there is none."""
    leaking = {name: judgement for name, judgement in objects.items() if judgement.verdict == "leak"}
    memory_leaks = memory.verdict == "leak"
    if memory_leaks:
        leaking |= {
            name: replace(judgement, reason=rate_text(judgement.per_cycle, cycles.unit))
            for name, judgement in objects.items()
            if judgement.verdict in ("too early", "growing") and _rises_with(judgement, memory)
        }
    leaking = {
        name: _dated_by_memory(judgement, histories[name], memory, cycles.unit)
        for name, judgement in leaking.items()
    }
    leaking_sizes = {name: judgement for name, judgement in sizes.items() if judgement.verdict == "leak"}
    last = cycles.points[-1]
    past_bound = {name: buffer for name, buffer in last.buffers.items() if buffer.past_bound}
    graphs = {
        name: tensors
        for name, tensors in last.graphs.items()
        if name in past_bound or verdict.leaks(Component("buffer", name))
    }
    # Objects, sizes and bounds show the start better than memory, which is still warming up.
    # The largest relative rise shows it best: 2 environments rather than a million dicts.
    clearest = max((*leaking.values(), *leaking_sizes.values()), key=_ratio, default=None)
    starts = [] if clearest is None else [clearest.since]
    starts += [cycles.unbroken_since(_past_bound(name)) for name in past_bound]
    starts += [cycles.unbroken_since(reader("graphs", name)) for name in graphs]
    starts = starts or ([memory.since] if memory_leaks else [])
    if not starts:
        return None
    start = min(starts)
    growth = cycles.growth_since(start)
    if growth < _LEAST_GROWTH:
        growth = memory.per_cycle
    return RunLeak(_phase(cycles, leaking, start), growth, start, leaking, leaking_sizes, past_bound, graphs)


def _past_bound(name: str) -> Callable[[Point], bool]:
    """A condition on points: the buffer exceeds its bound by a byte or more, has no bound, or is missing."""

    def holds(point: Point) -> bool:
        buffer = point.buffers.get(name)
        return buffer is None or buffer.full_bytes is None or buffer.nbytes - buffer.full_bytes >= 1

    return holds


def _rises_with(judgement: Judgement, memory: Judgement) -> bool:
    """Whether rarely counted objects have at least doubled since memory began to rise."""
    return judgement.change >= max(judgement.baseline, 1.0) and judgement.since >= memory.since - _APART


def _dated_by_memory(judgement: Judgement, counts: Points, memory: Judgement, unit: str) -> Judgement:
    """Take the start of memory growth for a rise with one or two counts, if it lies between two counts."""
    earlier = [point for point in counts if point[0] < judgement.since]
    later = counts[len(earlier) :]
    if len(later) >= _FEWEST_COUNTS or not earlier or not earlier[-1][0] < memory.since <= later[0][0]:
        return judgement
    (cycle, level), (_, low) = later[-1], earlier[-1]
    rate = (level - low) / (cycle - memory.since + 1)
    reason = judgement.reason.replace(rate_text(judgement.per_cycle, unit), rate_text(rate, unit))
    return replace(judgement, since=memory.since, per_cycle=rate, reason=reason)


def _ratio(judgement: Judgement) -> float:
    return judgement.change / max(judgement.baseline, 1.0)


def _phase(cycles: Cycles, leaking: dict[str, Judgement], since: int) -> str:
    """The phase that grows: by counts of the class that leaks most if they are clear, else by memory.

    Counts older than the phase are ignored. If most are, memory decides.
    """
    name = max(leaking, key=lambda one: _ratio(leaking[one]), default="")
    objects: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    rise = leaking[name].change if name else 0.0
    began, previous = float("-inf"), cycles.points[0]
    for point in cycles.points:
        if point.event != "phase":
            continue
        if cycles.number(point) >= since:
            memory[point.phase] += point.delta_bytes or 0.0
            is_object = name in point.objects
            is_counted = point.is_counted_since(previous.time, name) and previous.is_counted_since(
                began, name
            )
            if not is_object or (is_counted and name in previous.objects):
                objects[point.phase] += max(0.0, point.count(name) - previous.count(name))
        began, previous = previous.time, point
    total = sum(objects.values())
    for phase, rise_in_phase in objects.items():
        if total > _SEEN_SHARE * rise and rise_in_phase >= _CLEAR_SHARE * total:
            return phase
    largest = max(memory, key=memory.__getitem__, default="")
    return largest if largest and memory[largest] > 0 else ""
