"""From a recorded run to a report: trend, growth, large objects, and the leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heapwatch.judge.component import MEMORY, Component, material
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Point, Run, component_of
from heapwatch.report.cycles import Cycles, reader
from heapwatch.report.judgement import Judgement, Terms, judged
from heapwatch.report.leak import FoundLeak, found_leak
from heapwatch.report.said import Said, said_of
from heapwatch.report.since import Points

SIZE_LIMIT_BYTES = 5e6  # growth of a named object in a cycle
_NOISE_OF_SIZES = 0.01
_MEMORY_SHARE = 0.7  # of a rise of memory; buffers that take as much explain it
_LEAST_SHARE = 0.1  # rise of a class: there are thousands of lists, and what is loaded late adds some
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
class Report:
    """The report on a run; bytes, and cycles of `unit`.

    `objects` are live objects and other counts. `large` are large watched objects, `largest` class and bytes
    of the largest single objects that the trainer found last. `said` is what the trainer's judge says. `log`
    are the last lines of a log that was given.
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
    said: Said
    notes: tuple[str, ...]
    log: Sequence[str] = ()

    @property
    def verdict(self) -> Word:
        """The verdict on the run: the trainer's own, unless its cycles exceed what it declares."""
        if self.finding is not None:
            return "leak"
        if self.said.explanation is not None:
            return self.said.explanation.verdict
        if self.said.leaking:
            return "leak"
        undecided = self.said.waits and self.memory.verdict in ("healthy", "warm-up", "growing")
        return "too early" if undecided else self.memory.verdict


def analyse(run: Run, *, large_bytes: float = 50e6, unit: str = "") -> Report:
    """Judge a run.

    Args:
        run: at least one point.
        large_bytes: least size of a large object.
        unit: of the cycles to compare, from the first one on; by default of which two have ended.

    """
    cycles, said, last = Cycles(run, unit), said_of(run), run.points[-1]
    resident = cycles.series(lambda point: point.resident_bytes)
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
    finding = found_leak(cycles, said, memory, objects, sizes, histories)
    if finding is not None:  # one rate for one thing
        objects |= finding.objects
        memory = replace(memory, per_cycle=finding.memory_bytes_per_cycle)
        finding = replace(finding, objects=_aged(finding.objects, memory.last, cycles.unit))
    return Report(
        trainer=run.trainer,
        unit=cycles.unit,
        baseline=run.points[0],
        current=last,
        trend=_trend(cycles),
        memory=memory,
        objects=_aged(objects, memory.last, cycles.unit),
        sizes=sizes,
        large=[held for held in _held(last) if held.nbytes >= large_bytes],
        largest=next((point.large for point in reversed(run.points) if point.large), ()),
        finding=finding,
        said=said,
        notes=run.notes,
    )


def _aged(judgements: dict[str, Judgement], last: float, unit: str) -> dict[str, Judgement]:
    """The judgements; of a level that was not read in the last cycle the reason says when it was."""
    return {
        name: judged
        if judged.last >= last
        else replace(
            judged, reason=", ".join(filter(None, (judged.reason, f"last read in {unit} {judged.last:.0f}")))
        )
        for name, judged in judgements.items()
    }


def _objects(cycles: Cycles, said: Said, histories: dict[str, Points]) -> dict[str, Judgement]:
    """Live objects and other counts by name; adds their levels to `histories`."""
    bounds = cycles.points[-1].bounds
    stored = cycles.series(lambda point: _stored(point) if point.buffers else None)
    found = {}
    for field in ("objects", "items"):
        live = field == "objects"
        for name in cycles.names(field):
            history = histories[name] = cycles.series(reader(field, name), counted=name if live else "")
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


def _sizes(cycles: Cycles, said: Said) -> dict[str, Judgement]:
    """Sizes of named objects. Growth in a cycle is a leak from the declared limit on.

    Without one it is from 5 MB on, unless the trainer says that nothing leaks.
    """
    last, unit = cycles.points[-1], cycles.unit
    found = {}
    for name in cycles.names("sizes"):
        history = cycles.series(reader("sizes", name))
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
    # Several samples, and phases that count no cycles, may lie in one cycle. They have their time as a label.
    timed = cycles.unit == "minute" or point.event == "sample"
    at = _after(cycles.seconds_at(point)) if timed else f"{short} {number}"
    if point.phase:
        return f"{at}: After {point.phase}"
    return f"End of {at}" if point.event == "cycle" and not timed else at


def _after(seconds: float) -> str:
    return f"After {seconds:.0f} s" if seconds < _LONGEST_SECONDS else f"After {seconds / 60:.1f} min"
