"""Formats a report as text: sections with a table and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heapwatch.explain.findings import Explanation, labelled, narrative
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Point
from heapwatch.report.findings import Report, TrendRow
from heapwatch.report.judgement import Judgement
from heapwatch.report.leak import RunLeak
from heapwatch.text.numbers import duration, from_to, gigabytes, size, size_change
from heapwatch.text.tables import aligned
from heapwatch.text.terminal import plain

LARGE_BYTES = 50e6  # as in the documents of the trading trainer
_LONGEST_CELL, _LONGEST_LINE = 200, 1000
_RULE = "=" * 78


@dataclass(frozen=True)
class Section:
    """A title, a table (the first column is text, the others are numbers or words), and lines below it."""

    title: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    lines: Sequence[str] = ()


def sections(report: Report, most_rows: int, large_bytes: float = LARGE_BYTES) -> list[Section]:
    """The report's sections.

    The trend has at most `most_rows` lines, 0 for all. Buffers and named objects are large from `large_bytes`
    on.
    """
    parts = [
        _finding(report),
        _snapshot(f"BASELINE: {report.trend[0].label.removesuffix(' (baseline)')}", report.baseline),
        _snapshot(f"MEMORY SNAPSHOT: {report.trend[-1].label}", report.current),
        _trend(report, most_rows),
        _growth(report),
        _objects(report),
        _sizes(report),
        _large(report.current, large_bytes),
        _largest(report),
    ]
    if report.log:
        parts.append(Section(f"LAST {len(report.log)} LINES OF THE LOG", lines=report.log))
    return [_escaped(section) for section in parts if section.rows or section.lines]


def title(report: Report) -> str:
    """The report's own name."""
    return plain(f"Memory report: {report.trainer}")


def headline(report: Report) -> str:
    """The result in one line: the recorded explanation of the trainer, if there is one."""
    if (explanation := _quotation(report)) is not None:
        return plain(narrative(explanation).splitlines()[0])
    if report.finding is not None:
        return plain(leak_line(report))
    result = report.memory.reason or "memory is at its level of the start"
    if report.memory.per_cycle:
        result = f"memory grows by {size(report.memory.per_cycle)} per {report.unit}: {result}"
    return plain(labelled(report.verdict, f"{result}."))


def _quotation(report: Report) -> Explanation | None:
    """The recorded explanation, if its verdict is that of the report."""
    explanation = report.trainer_verdict.explanation
    return explanation if explanation is not None and explanation.verdict == report.verdict else None


def leak_line(report: Report) -> str:
    """The leak of a report in one line; empty if there is none."""
    if report.finding is None:
        return ""
    return labelled("leak", finding_lines(report.finding, report.unit)[_first_line(report.finding)])


def _first_line(finding: RunLeak) -> int:
    """Index of the first line that names what leaks; phase and growth come before it."""
    preamble_lines = bool(finding.phase) + bool(finding.growth_bytes_per_cycle)
    names_cause = finding.objects or finding.sizes or finding.past_bound or finding.graphs
    return preamble_lines if names_cause else max(0, preamble_lines - 1)


def finding_lines(finding: RunLeak, unit: str) -> list[str]:
    """The lines that describe a leak."""
    lines = [f"Phase: {finding.phase}"] if finding.phase else []
    if finding.growth_bytes_per_cycle:
        lines.append(f"Growth: {size_change(finding.growth_bytes_per_cycle)} per {unit}")
    for name, judgement in finding.objects.items():
        lines.append(
            f"{name} count: {judgement.baseline:.0f} -> {judgement.current:.0f} ({judgement.reason})"
        )
    for name, judgement in finding.sizes.items():
        rise = f"{size(judgement.baseline)} -> {size(judgement.current)}"
        lines.append(f"{name} size: {rise} ({size_change(judgement.per_cycle)}/{unit}, {judgement.reason})")
    for name, buffer in finding.past_bound.items():
        lines.append(
            f"{name} buffer: {size(buffer.nbytes)}, past its bound of {size(buffer.full_bytes or 0)}"
        )
    for name, tensors in finding.graphs.items():
        lines.append(f"{name} buffer: {tensors:.0f} tensors hold the autograd graph they were computed with")
        lines.append("Remedy: store `tensor.detach().cpu()`, or `.item()` for a number")
    return [*lines, f"Started at {unit} {finding.since}"]


def verdict(judgement: Judgement) -> str:
    """The verdict, in capitals if it is bad, and its reason."""
    return (
        f"{_capitalized(judgement.verdict)}: {judgement.reason}"
        if judgement.reason
        else _capitalized(judgement.verdict)
    )


def _capitalized(word: Word) -> str:
    return word.upper() if word == "leak" else word


def _escaped(section: Section) -> Section:
    """The section with control characters of names escaped."""
    return Section(
        plain(section.title, _LONGEST_LINE),
        section.columns,
        [tuple(plain(cell, _LONGEST_CELL) for cell in row) for row in section.rows],
        [plain(line, _LONGEST_LINE) for line in section.lines],
    )


def _finding(report: Report) -> Section:
    lines = [headline(report)]
    if (explanation := _quotation(report)) is not None:
        lines = narrative(explanation).splitlines()
    if report.finding is not None:
        lines += ["LEAK FOUND:", *(f"- {line}" for line in finding_lines(report.finding, report.unit))]
    return Section("FINDING", lines=lines)


def _snapshot(title: str, point: Point) -> Section:
    bytes_rows = {
        "RSS (actual RAM)": point.resident_bytes,
        "VMS (virtual)": point.virtual_bytes,
        "Worker processes": point.worker_bytes,
        "GPU allocated": point.gpu_allocated_bytes,
        "GPU reserved": point.gpu_reserved_bytes,
    }
    rows = [(name, size(nbytes)) for name, nbytes in bytes_rows.items() if nbytes is not None]
    for name, buffer in point.buffers.items():
        full = f" of {size(buffer.full_bytes)}" if buffer.full_bytes else ""
        rows.append((f"Buffer {name}", f"{size(buffer.nbytes)}{full}"))
    rows += [(f"{name} objects{_age(point, name)}", f"{count:.0f}") for name, count in point.objects.items()]
    rows += [(name, f"{count:.0f}") for name, count in point.items.items()]
    return Section(title, ("", ""), rows)


def _age(point: Point, name: str) -> str:
    """How long before its point a class was counted; empty below one second."""
    age = point.time - point.counted_at.get(name, point.time)
    return f", counted {duration(age)} earlier" if age >= 1 else ""


def _trend(report: Report, most_rows: int) -> Section:
    rows = [
        (
            row.label,
            gigabytes(row.resident_bytes),
            "baseline" if row.change_bytes is None else gigabytes(row.change_bytes, signed=True),
        )
        if row
        else ("...", "", "")
        for row in elided(report.trend, most_rows)
    ]
    return Section(f"MEMORY TREND ACROSS {report.unit.upper()}S", ("Label", "RAM", "Change"), rows)


def elided(rows: list[TrendRow], most_rows: int) -> list[TrendRow | None]:
    """The first and last rows; None stands for the omitted ones between them."""
    if not most_rows or len(rows) <= most_rows:
        return [*rows]
    head = most_rows // 2
    return [*rows[:head], None, *rows[head - most_rows :]]


def _growth(report: Report) -> Section:
    judgement = report.memory
    percent = f" ({judgement.change / judgement.baseline:+.1%})" if judgement.baseline else ""
    rows = [
        ("Baseline", size(judgement.baseline)),
        ("Current", size(judgement.current)),
        ("Growth", f"{size_change(judgement.change)}{percent}"),
        *_rates(report),
        ("Verdict", _capitalized(report.verdict)),
    ]
    return Section("MEMORY GROWTH ANALYSIS", ("RAM usage", ""), rows)


def _rates(report: Report) -> list[tuple[str, str]]:
    """Growth per minute by the recorded explanation, and growth per cycle."""
    explanation, per_cycle = _quotation(report), report.memory.per_cycle
    rates = []
    if explanation is not None and explanation.verdict != "healthy":
        rates.append(("Growth per minute", size_change(explanation.growth_bytes_per_minute)))
    if not rates or (per_cycle and report.unit != "minute"):
        rates.append((f"Growth per {report.unit}", size_change(per_cycle)))
    return rates


def _objects(report: Report) -> Section:
    rows = [
        (name, from_to(judgement.baseline, judgement.current), verdict(judgement))
        for name, judgement in report.objects.items()
    ]
    return Section("OBJECT COUNT CHANGES", ("Type", "Change", "Verdict"), rows)


def _sizes(report: Report) -> Section:
    unit = report.unit
    rows = [
        (
            name,
            size(judgement.current),
            size_change(judgement.change),
            f"{size_change(judgement.per_cycle)}/{unit}",
            verdict(judgement),
        )
        for name, judgement in report.sizes.items()
    ]
    leaking = [name for name, judgement in report.sizes.items() if judgement.verdict == "leak"]
    lines = [f"WARNING: Potential memory leaks detected in: {leaking}"] if leaking else []
    return Section("NAMED OBJECTS", ("Object", "Size", "Growth", "Rate", "Verdict"), rows, lines)


def _large(point: Point, large_bytes: float) -> Section:
    buffers = [
        (name, "buffer", buffer.nbytes, size(buffer.full_bytes) if buffer.full_bytes else "")
        for name, buffer in point.buffers.items()
    ]
    named = [(name, "object", nbytes, "") for name, nbytes in point.sizes.items()]
    largest = sorted(buffers + named, key=lambda row: row[2], reverse=True)
    rows = [(name, kind, size(nbytes), full) for name, kind, nbytes, full in largest if nbytes >= large_bytes]
    return Section("LARGE OBJECTS", ("Name", "Kind", "Size", "When full"), rows)


def _largest(report: Report) -> Section:
    rows = [(name, size(nbytes)) for name, nbytes in report.largest]
    return Section("LARGEST SINGLE OBJECTS, WHATEVER HOLDS THEM", ("Type", "Size"), rows)


def as_text(report: Report, most_rows: int, large_bytes: float = LARGE_BYTES) -> str:
    """The report as text with aligned columns; see `sections`."""
    return "\n".join([title(report), "", *_section_lines(sections(report, most_rows, large_bytes))])


def trend_lines(report: Report, most_rows: int) -> list[str]:
    """The trend across cycles and the analysis of the growth, as in the whole report."""
    return _section_lines(map(_escaped, (_trend(report, most_rows), _growth(report))))


def _section_lines(parts: Iterable[Section]) -> list[str]:
    return [
        line
        for section in parts
        for line in (_RULE, section.title, _RULE, *_table_lines(section), *section.lines, "")
    ]


def _table_lines(section: Section) -> list[str]:
    if not section.rows:
        return []
    head = any(section.columns)
    rows = [section.columns, *section.rows] if head else section.rows
    width = len(section.columns)
    # The last of several columns is a verdict, in words.
    return aligned(rows, range(1, max(2, width - 1)), head=head)
