"""From a recorded run to a report: trend, growth, large objects, and the leak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heapwatch.explain.findings import Explanation
from heapwatch.explain.received import explanation_of
from heapwatch.judge.component import MEMORY, Component, material
from heapwatch.judge.trainer import MATURE_MINUTES
from heapwatch.judge.verdict import WORDS, Word
from heapwatch.recording.points import Buffer, Point, Run, component_of
from heapwatch.report.cycles import Cycles
from heapwatch.report.judgement import Judgement, Terms, each, judged, judged_in_time
from heapwatch.report.since import Points

SIZE_LIMIT_BYTES = 5e6  # growth of a named object in a cycle
_NOISE_OF_SIZES = 0.01
_MEMORY_SHARE = 0.7  # of a rise of memory; buffers that take as much explain it
_CLEAR_SHARE = 0.8  # of a rise, in one phase
_LEAST_GROWTH = 1e5  # bytes a cycle, above the noise of a process that stands still
_LEAST_SHARE = 0.1  # rise of a class: there are thousands of lists, and what is loaded late adds some
_FEWEST_COUNTS = 3  # of a rise, that tell where it began
_APART = 2  # cycles between the starts of two rises that are one
_SEEN_SHARE = 0.5  # of a rise, in phases at whose ends objects were counted: fewer counts tell no phase
_LONGEST_SECONDS = 120.0  # a longer time is written in minutes


@dataclass(frozen=True)
class TrendRow:
    """A line of the trend table; `change_bytes` is from the line before, None for the baseline."""

    label: str
    cycle: int
    phase: str
    resident_bytes: float
    change_bytes: float | None


@dataclass(frozen=True)
class Held:
    """What a buffer or a named object holds."""

    kind: str
    name: str
    nbytes: float
    full_bytes: float | None = None


@dataclass(frozen=True)
class FoundLeak:
    """A leak that was found. `phase` is empty if none dominates.

    `past_bound` are buffers that hold more than they may, `graphs` how many tensors of a buffer hold the
    autograd graph they were computed with.
    """

    phase: str
    growth_bytes_per_cycle: float
    since: int
    objects: dict[str, Judgement]
    sizes: dict[str, Judgement]
    past_bound: dict[str, Buffer]
    graphs: dict[str, float]


@dataclass(frozen=True)
class Report:
    """The report on a run; bytes, and cycles of `unit`.

    `objects` are live objects and other counts. `large` are large watched objects, `largest` class and bytes
    of the largest single objects that the trainer found last. `waits` is a text such as "12 of 24 minutes"
    while a slow leak cannot be distinguished from a warm-up. `explanation` is the trainer's last explanation,
    if it is recorded. `log` are the last lines of a log that was given.
    """

    trainer: str
    unit: str
    baseline: Point
    current: Point
    trend: list[TrendRow]
    memory: Judgement
    objects: dict[str, Judgement]
    sizes: dict[str, Judgement]
    large: list[Held]
    largest: Sequence[tuple[str, float]]
    finding: FoundLeak | None
    waits: str
    notes: tuple[str, ...]
    explanation: Explanation | None = None
    log: Sequence[str] = ()

    @property
    def verdict(self) -> Word:
        """The verdict on the run: the trainer's own, unless its cycles exceed what it declares."""
        if self.finding is not None:
            return "leak"
        if self.explanation is not None:
            return self.explanation.verdict
        undecided = self.waits and self.memory.verdict in ("healthy", "warm-up", "growing")
        return "too early" if undecided else self.memory.verdict


def analyse(run: Run, *, large_bytes: float = 50e6) -> Report:
    """Judge a run.

    Args:
        run: at least one point.
        large_bytes: least size of a large object.

    """
    cycles, explanation = Cycles(run), _explanation(run)
    last, resident = run.points[-1], cycles.series(lambda point: point.resident_bytes)
    said = _said_in_time(run) if explanation is None else _said_by(explanation, run)
    memory = judged(
        resident,
        Terms(
            material(MEMORY, resident[0][1]),
            cycles.unit,
            cycles.seconds,
            limit=last.growth_limit("memory", "trainer", cycles.unit),
            leaks=said.of(MEMORY),
            filled=cycles.series(lambda point: point.bounded_bytes) if last.buffers else (),
            share=_MEMORY_SHARE,
        ),
    )
    histories: dict[str, Points] = {}
    objects = _objects(cycles, said, histories)
    sizes = _sizes(cycles, said)
    return Report(
        trainer=run.trainer,
        unit=cycles.unit,
        baseline=run.points[0],
        current=last,
        trend=_trend(cycles),
        memory=memory,
        objects=objects,
        sizes=sizes,
        large=[held for held in _held(last) if held.nbytes >= large_bytes],
        largest=next((point.large for point in reversed(run.points) if point.large), ()),
        finding=_finding(cycles, said, memory, objects, sizes, histories),
        waits=said.waits,
        notes=run.notes,
        explanation=explanation,
    )


class _Said(NamedTuple):
    """What the trainer's judge says: what leaks, and of what it says that it does not."""

    leaking: frozenset[Component] = frozenset()
    denies: Callable[[Component], bool] = lambda _: False
    waits: str = ""

    def of(self, component: Component) -> bool | None:
        """Whether this leaks; None if it says nothing about it, and the cycles decide."""
        if component in self.leaking:
            return True
        return False if self.denies(component) else None


def _said_by(explanation: Explanation, run: Run) -> _Said:
    """If it says that something leaks, the cycles tell which counts do; otherwise nothing does."""
    if explanation.verdict != "leak":
        return _Said(denies=lambda _: True)
    # Records of earlier versions do not list what leaks.
    listed = (run.explanation or {}).get("leaks") or [{"resource": "memory", "component": "trainer"}]
    leaking = frozenset(Component(one["resource"], one["component"]) for one in listed)
    return _Said(leaking, _is_memory)


def _said_in_time(run: Run) -> _Said:
    judge = judged_in_time(run)
    if judge is None:
        return _Said()
    watched = judge.watched_minutes
    waits = f"{watched:.0f} of {MATURE_MINUTES} minutes" if watched < MATURE_MINUTES else ""
    return _Said(frozenset(leak.component for leak in judge.leaks), _is_memory, waits)


def _is_memory(component: Component) -> bool:
    return component == MEMORY


def _objects(cycles: Cycles, said: _Said, histories: dict[str, Points]) -> dict[str, Judgement]:
    """Live objects and other counts by name; adds their levels to `histories`."""
    bounds = cycles.points[-1].bounds
    stored = cycles.series(lambda point: _stored(point) if point.buffers else None)
    found = {}
    for field in ("objects", "items"):
        live = field == "objects"
        for name in cycles.names(field):
            history = histories[name] = cycles.series(_reader(field, name), counted=live)
            component, first = Component("objects", name) if live else component_of(name), history[0][1]
            least = material(component, first)
            terms = Terms(
                max(least, _LEAST_SHARE * first) if live else least,
                cycles.unit,
                cycles.seconds,
                bound=bounds.get(name),
                leaks=said.of(component),
                filled=stored if live else (),
            )
            found[name] = judged(history, terms)
    return found


def _sizes(cycles: Cycles, said: _Said) -> dict[str, Judgement]:
    """Sizes of named objects. Growth in a cycle is a leak from the declared limit on.

    Without one it is from 5 MB on, unless the trainer says that nothing leaks.
    """
    last, unit = cycles.points[-1], cycles.unit
    found = {}
    for name in cycles.names("sizes"):
        history = cycles.series(_reader("sizes", name))
        allowed = last.growth_limit("object_size", name, unit)
        denied = said.denies(Component("object_size", name))
        found[name] = judged(
            history,
            Terms(
                _NOISE_OF_SIZES * history[0][1],
                unit,
                cycles.seconds,
                limit=allowed or (None if denied else SIZE_LIMIT_BYTES),
                leaks=False if denied else None,
            ),
        )
    return found


def _explanation(run: Run) -> Explanation | None:
    try:
        found = None if run.explanation is None else explanation_of(run.explanation)
    except ValueError:
        return None
    return None if found is None or found.verdict not in WORDS else found


def _reader(field: str, name: str) -> Callable[[Point], float | None]:
    return lambda point: getattr(point, field).get(name)


def _stored(point: Point) -> float:
    """Items that buffers hold within their bounds."""
    return sum(
        (buffer.items or 0.0) * min(1.0, buffer.full_bytes / buffer.nbytes)
        for buffer in point.buffers.values()
        if buffer.full_bytes is not None and buffer.nbytes
    )


def _held(point: Point) -> list[Held]:
    buffers = [Held("buffer", name, held.nbytes, held.full_bytes) for name, held in point.buffers.items()]
    sizes = [Held("object", name, size) for name, size in point.sizes.items()]
    return sorted(buffers + sizes, key=lambda held: held.nbytes, reverse=True)


def _trend(cycles: Cycles) -> list[TrendRow]:
    """The baseline and the end of each phase; of each cycle if there are no phases."""
    first, *others = cycles.points
    wanted = next((event for event in ("phase", "cycle") if any(p.event == event for p in others)), "sample")
    number = cycles.number(first)
    started = number == 0 and first.event == "start"
    name = "Trainer initialized" if started else f"{cycles.unit.capitalize()} {number}: start of the record"
    rows = [TrendRow(f"{name} (baseline)", number, "", first.resident_bytes, None)]
    for point in others:
        if point.event == wanted:
            change = point.resident_bytes - rows[-1].resident_bytes
            label = _label(cycles, point)
            rows.append(TrendRow(label, cycles.number(point), point.phase, point.resident_bytes, change))
    return rows


def _label(cycles: Cycles, point: Point) -> str:
    name, number = cycles.unit.capitalize(), cycles.number(point)
    short = "Gen" if name == "Generation" else name
    # Several samples, and phases that count no cycles, may lie in one cycle: they are told by their time.
    timed = cycles.unit == "minute" or point.event == "sample"
    at = _after(cycles.seconds_at(point)) if timed else f"{short} {number}"
    if point.phase:
        return f"{at}: After {point.phase}"
    return f"End of {at}" if point.event == "cycle" and not timed else at


def _after(seconds: float) -> str:
    return f"After {seconds:.0f} s" if seconds < _LONGEST_SECONDS else f"After {seconds / 60:.1f} min"


def _finding(
    cycles: Cycles,
    said: _Said,
    memory: Judgement,
    objects: dict[str, Judgement],
    sizes: dict[str, Judgement],
    histories: Mapping[str, Points],
) -> FoundLeak | None:
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
    begins += [cycles.unbroken_since(_reader("graphs", name)) for name in graphs]
    begins = begins or ([memory.since] if memory_leaks else [])
    if not begins:
        return None
    since = min(begins)
    growth = cycles.growth_since(since)
    if growth < _LEAST_GROWTH:
        growth = memory.per_cycle or sum(judged.per_cycle for judged in grown.values())
    return FoundLeak(_phase(cycles, leaking, since), growth, since, leaking, grown, past_bound, graphs)


def _past_bound(name: str) -> Callable[[Point], bool]:
    return lambda point: name not in point.buffers or point.buffers[name].past_bound


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
    """The phase that grows: by where the leaking objects appear if that is clear, else by memory.

    A count that is older than the phase says nothing about it. If most counts are, memory decides.
    """
    objects: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    risen = sum(judged.change for judged in leaking.values())
    began, before = float("-inf"), cycles.points[0]
    for point in cycles.points:
        if point.event != "phase":
            continue
        if cycles.number(point) >= since:
            memory[point.phase] += point.delta_bytes or 0.0
            counted = point.is_counted_since(before.time) and before.is_counted_since(began)
            for name in leaking:
                if counted or name not in point.objects:
                    objects[point.phase] += max(0.0, point.count(name) - before.count(name))
        began, before = before.time, point
    total = sum(objects.values())
    for phase, seen in objects.items():
        if total > _SEEN_SHARE * risen and seen >= _CLEAR_SHARE * total:
            return phase
    best = max(memory, key=memory.__getitem__, default="")
    return best if best and memory[best] > 0 else ""
