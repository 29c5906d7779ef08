"""The leak of a recorded run: what leaks, in which phase, since which cycle and by how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from heapwatch.judge.component import Component
from heapwatch.recording.points import Buffer, Point
from heapwatch.report.cycles import Cycles, reader
from heapwatch.report.judgement import Judgement, each
from heapwatch.report.said import Said
from heapwatch.report.since import Points

_CLEAR_SHARE = 0.8  # of a rise, in one phase
_LEAST_GROWTH = 1e5  # bytes a cycle, above the noise of a process that stands still
_FEWEST_COUNTS = 3  # of a rise, that tell where it began
_APART = 2  # cycles between the starts of two rises that are one
_SEEN_SHARE = 0.5  # of a rise, in phases at whose ends objects were counted: fewer counts tell no phase


@dataclass(frozen=True)
class FoundLeak:
    """A leak that was found. `phase` is empty if none dominates.

    `past_bound` are buffers that hold more than they may, `graphs` how many tensors of a buffer hold the
    autograd graph they were computed with.
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
        """Growth of the process, or of the named objects that leak where the process does not grow."""
        return self.memory_bytes_per_cycle or sum(judged.per_cycle for judged in self.sizes.values())


def found_leak(
    cycles: Cycles,
    said: Said,
    memory: Judgement,
    objects: dict[str, Judgement],
    sizes: dict[str, Judgement],
    histories: Mapping[str, Points],
) -> FoundLeak | None:
    """The leak of a run with its phase, its growth and its beginning; None if there is none."""
    leaking = {name: judged for name, judged in objects.items() if judged.verdict == "leak"}
    memory_leaks = memory.verdict == "leak"
    if memory_leaks:
        leaking |= {
            name: replace(judged, reason=each(judged.per_cycle, cycles.unit))
            for name, judged in objects.items()
            if judged.verdict in ("too early", "growing") and _rises_with(judged, memory)
        }
    leaking = {
        name: _placed(judged, histories[name], memory, cycles.unit) for name, judged in leaking.items()
    }
    grown = {name: judged for name, judged in sizes.items() if judged.verdict == "leak"}
    last = cycles.points[-1]
    past_bound = {name: held for name, held in last.buffers.items() if held.past_bound}
    graphs = {
        name: many
        for name, many in last.graphs.items()
        if name in past_bound or said.of(Component("buffer", name))
    }
    # Objects, sizes and bounds tell when it began; memory is still warming up then.
    # What has risen most above its level of before tells it best: 2 environments, and not a million dicts.
    most = max((*leaking.values(), *grown.values()), key=_times, default=None)
    begins = [] if most is None else [most.since]
    begins += [cycles.unbroken_since(_past_bound(name)) for name in past_bound]
    begins += [cycles.unbroken_since(reader("graphs", name)) for name in graphs]
    begins = begins or ([memory.since] if memory_leaks else [])
    if not begins:
        return None
    since = min(begins)
    growth = cycles.growth_since(since)
    if growth < _LEAST_GROWTH:
        growth = memory.per_cycle
    return FoundLeak(_phase(cycles, leaking, since), growth, since, leaking, grown, past_bound, graphs)


def _past_bound(name: str) -> Callable[[Point], bool]:
    """Whether a point has more in a buffer than is allowed, be it little, or does not have the buffer."""

    def holds(point: Point) -> bool:
        held = point.buffers.get(name)
        return held is None or held.full_bytes is None or held.nbytes - held.full_bytes >= 1

    return holds


def _rises_with(judged: Judgement, memory: Judgement) -> bool:
    """Whether objects have doubled at least since memory began to rise, though they were rarely counted."""
    return judged.change >= max(judged.baseline, 1.0) and judged.since >= memory.since - _APART


def _placed(judged: Judgement, counted: Points, memory: Judgement, unit: str) -> Judgement:
    """A rise that was counted once or twice: it began with that of memory, if that was between two counts."""
    before = [point for point in counted if point[0] < judged.since]
    after = counted[len(before) :]
    if len(after) >= _FEWEST_COUNTS or not before or not before[-1][0] < memory.since <= after[0][0]:
        return judged
    (cycle, level), (_, low) = after[-1], before[-1]
    rate = (level - low) / (cycle - memory.since + 1)
    reason = judged.reason.replace(each(judged.per_cycle, unit), each(rate, unit))
    return replace(judged, since=memory.since, per_cycle=rate, reason=reason)


def _times(judged: Judgement) -> float:
    return judged.change / max(judged.baseline, 1.0)


def _phase(cycles: Cycles, leaking: dict[str, Judgement], since: int) -> str:
    """The phase that grows: by where the class that leaks most appears if that is clear, else by memory.

    A count that is older than the phase says nothing about it. If most counts are, memory decides.
    """
    name = max(leaking, key=lambda one: _times(leaking[one]), default="")
    objects: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    risen = leaking[name].change if name else 0.0
    began, before = float("-inf"), cycles.points[0]
    for point in cycles.points:
        if point.event != "phase":
            continue
        if cycles.number(point) >= since:
            memory[point.phase] += point.delta_bytes or 0.0
            is_object = name in point.objects
            counted = point.is_counted_since(before.time, name) and before.is_counted_since(began, name)
            if not is_object or (counted and name in before.objects):
                objects[point.phase] += max(0.0, point.count(name) - before.count(name))
        began, before = before.time, point
    total = sum(objects.values())
    for phase, seen in objects.items():
        if total > _SEEN_SHARE * risen and seen >= _CLEAR_SHARE * total:
            return phase
    best = max(memory, key=memory.__getitem__, default="")
    return best if best and memory[best] > 0 else ""
