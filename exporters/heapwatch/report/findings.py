"""Analyses a recorded run: trend, growth, large objects, and the leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heapwatch.judge.component import MEMORY, Component, material
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Point, Run, component_of
from heapwatch.report.cycles import Cycles, reader
from heapwatch.report.judgement import Judgement, Terms, judged
from heapwatch.report.leak import RunLeak, find_leak
from heapwatch.report.since import Points
from heapwatch.report.trainer_verdict import TrainerVerdict, trainer_verdict_of

SIZE_LIMIT_BYTES = 5e6  # growth of a named object in a cycle
_NOISE_OF_SIZES = 0.01
_MEMORY_SHARE = 0.7  # of a rise of memory: buffers that hold at least this share explain it
_LEAST_SHARE = 0.1  # least rise of a class: late imports add to thousands of lists
_LONGEST_SECONDS = 120.0  # longer times are shown in minutes


@dataclass(frozen=True)
class TrendRow:
    """A line of the trend table; `change_bytes` is from the line before, None for the baseline."""

    label: str
    cycle: int
    phase: str
    resident_bytes: float
    change_bytes: float | None


@dataclass(frozen=True)
class Report:
    """The report on a run; bytes, and cycles of `unit`.

    `objects` has live objects and other counts. `largest` has class and bytes of the largest single objects
    of the latest search. `trainer_verdict` is that of the trainer's own judge. `log` has the last lines of
    the given log.
    """

    trainer: str
    unit: str
    baseline: Point
    current: Point
    trend: list[TrendRow]
    memory: Judgement
    objects: dict[str, Judgement]
    sizes: dict[str, Judgement]
    largest: Sequence[tuple[str, float]]
    finding: RunLeak | None
    trainer_verdict: TrainerVerdict
    log: Sequence[str] = ()

    @property
    def verdict(self) -> Word:
        """The verdict on the run: the trainer's own, unless its cycles exceed what it declares."""
        if self.finding is not None:
            return "leak"
        if self.trainer_verdict.explanation is not None:
            return self.trainer_verdict.explanation.verdict
        # Without the trainer's own judge nothing is called healthy.
        return "too early" if self.memory.verdict in ("healthy", "warm-up") else self.memory.verdict


def analyse(run: Run, *, unit: str = "") -> Report:
    """Judge a run.

    Args:
        run: at least one point.
        unit: unit of the cycles to compare, used from one completed cycle on; by default see `Cycles`.

    """
    cycles, verdict, last = Cycles(run, unit), trainer_verdict_of(run), run.points[-1]
    resident = cycles.series(lambda point: point.resident_bytes)
    memory = judged(
        resident,
        Terms(
            material(MEMORY, resident[0][1]),
            cycles.unit,
            cycles.seconds,
            limit=last.growth_limit("memory", "trainer", cycles.unit),
            leaks=verdict.leaks(MEMORY),
            filled=cycles.series(lambda point: point.bounded_bytes) if last.buffers else (),
            share=_MEMORY_SHARE,
        ),
    )
    histories: dict[str, Points] = {}
    objects = _objects(cycles, verdict, histories)
    sizes = _sizes(cycles, verdict)
    finding = find_leak(cycles, verdict, memory, objects, sizes, histories)
    if finding is not None:  # both tables show the same rate
        objects |= finding.objects
        memory = replace(memory, per_cycle=finding.memory_bytes_per_cycle)
        finding = replace(finding, objects=_with_age(finding.objects, memory.last, cycles.unit))
    return Report(
        trainer=run.trainer,
        unit=cycles.unit,
        baseline=run.points[0],
        current=last,
        trend=_trend(cycles),
        memory=memory,
        objects=_with_age(objects, memory.last, cycles.unit),
        sizes=sizes,
        largest=next((point.large for point in reversed(run.points) if point.large), ()),
        finding=finding,
        trainer_verdict=verdict,
    )


def _with_age(judgements: dict[str, Judgement], last_cycle: float, unit: str) -> dict[str, Judgement]:
    """The judgements; the reason names the cycle of a reading that is older than the last cycle."""
    return {
        name: judgement
        if judgement.last >= last_cycle
        else replace(
            judgement,
            reason=", ".join(filter(None, (judgement.reason, f"last read in {unit} {judgement.last:.0f}"))),
        )
        for name, judgement in judgements.items()
    }


def _objects(cycles: Cycles, verdict: TrainerVerdict, histories: dict[str, Points]) -> dict[str, Judgement]:
    """Judge live objects and other counts, by name; adds their levels to `histories`."""
    bounds = cycles.points[-1].bounds
    items = cycles.series(lambda point: _stored_items(point) if point.buffers else None)
    judgements = {}
    for field in ("objects", "items"):
        is_live = field == "objects"
        for name in cycles.names(field):
            history = histories[name] = cycles.series(reader(field, name), of_class=name if is_live else "")
            component, start = Component("objects", name) if is_live else component_of(name), history[0][1]
            least = material(component, start)
            terms = Terms(
                max(least, _LEAST_SHARE * start) if is_live else least,
                cycles.unit,
                cycles.seconds,
                bound=bounds.get(name),
                leaks=verdict.leaks(component),
                filled=items if is_live else (),
            )
            judgements[name] = judged(history, terms)
    return judgements


def _sizes(cycles: Cycles, verdict: TrainerVerdict) -> dict[str, Judgement]:
    """Judge sizes of named objects: growth per cycle above the declared limit is a leak.

    The default limit is 5 MB; there is none if the trainer's judge reports no leak.
    """
    last, unit = cycles.points[-1], cycles.unit
    judgements = {}
    for name in cycles.names("sizes"):
        history = cycles.series(reader("sizes", name))
        limit = last.growth_limit("object_size", name, unit)
        denied = verdict.denies(Component("object_size", name))
        judgements[name] = judged(
            history,
            Terms(
                _NOISE_OF_SIZES * history[0][1],
                unit,
                cycles.seconds,
                limit=limit or (None if denied else SIZE_LIMIT_BYTES),
                leaks=False if denied else None,
            ),
        )
    return judgements


def _stored_items(point: Point) -> float:
    """Items that buffers hold within their bounds."""
    return sum(
        (buffer.items or 0.0) * min(1.0, buffer.full_bytes / buffer.nbytes)
        for buffer in point.buffers.values()
        if buffer.full_bytes is not None and buffer.nbytes
    )


def _trend(cycles: Cycles) -> list[TrendRow]:
    """The baseline and the end of each phase; of each cycle if there are no phases."""
    first, *points = cycles.points
    row_event = next(
        (event for event in ("phase", "cycle") if any(p.event == event for p in points)), "sample"
    )
    number = cycles.number(first)
    began_with_trainer = number == 0 and first.event == "start"
    name = (
        "Trainer initialized"
        if began_with_trainer
        else f"{cycles.unit.capitalize()} {number}: start of the record"
    )
    rows = [TrendRow(f"{name} (baseline)", number, "", first.resident_bytes, None)]
    for point in points:
        if point.event == row_event:
            change = point.resident_bytes - rows[-1].resident_bytes
            label = _label(cycles, point)
            rows.append(TrendRow(label, cycles.number(point), point.phase, point.resident_bytes, change))
    return rows


def _label(cycles: Cycles, point: Point) -> str:
    name, number = cycles.unit.capitalize(), cycles.number(point)
    short = "Gen" if name == "Generation" else name
    # Several samples, and phases that count no cycles, may lie in one cycle. They have their time as a label.
    has_time_label = cycles.unit == "minute" or point.event == "sample"
    moment = _elapsed_label(cycles.seconds_at(point)) if has_time_label else f"{short} {number}"
    if point.phase:
        return f"{moment}: After {point.phase}"
    return f"End of {moment}" if point.event == "cycle" and not has_time_label else moment


def _elapsed_label(seconds: float) -> str:
    return f"After {seconds:.0f} s" if seconds < _LONGEST_SECONDS else f"After {seconds / 60:.1f} min"
