"""A report as sections of tables and lines, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heapwatch.explain.findings import Explanation, labelled, narrative
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Point
from heapwatch.report.findings import Report, TrendRow
from heapwatch.report.judgement import Judgement
from heapwatch.report.leak import FoundLeak
from heapwatch.text.numbers import duration, from_to, gigabytes, size, size_change
from heapwatch.text.tables import aligned
from heapwatch.text.terminal import plain

_LONGEST_CELL, _LONGEST_LINE = 200, 1000
_RULE = "=" * 78


@dataclass(frozen=True)
class Section:
    """A title, a table (the first column is text, the others are numbers or words), and lines below it."""

    title: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    lines: Sequence[str] = ()


def sections(report: Report, most_rows: int) -> list[Section]:
    """The report's sections; the trend has at most `most_rows` lines, 0 for all."""
    written = [
        _finding(report),
        _snapshot(f"BASELINE: {report.trend[0].label.removesuffix(' (baseline)')}", report.baseline),
        _snapshot(f"MEMORY SNAPSHOT: {report.trend[-1].label}", report.current),
        _trend(report, most_rows),
        _growth(report),
        _objects(report),
        _sizes(report),
        _large(report),
        _largest(report),
    ]
    if report.log:
        written.append(Section(f"LAST {len(report.log)} LINES OF THE LOG", lines=report.log))
    if report.notes:
        written.append(Section("NOTES", lines=report.notes))
    return [_plain(section) for section in written if section.rows or section.lines]


def title(report: Report) -> str:
    """The report's own name."""
    return plain(f"Memory report: {report.trainer}")


def headline(report: Report) -> str:
    """The result in one line, in the trainer's own words if they are recorded."""
    if (quoted := _quoted(report)) is not None:
        return plain(narrative(quoted).splitlines()[0])
    if report.finding is not None:
        return plain(leak_line(report))
    if report.said.leaking:
        return plain(labelled("leak", ", ".join(map(str, sorted(report.said.leaking)))))
    about = report.memory.reason or "memory is at its level of the start"
    if report.memory.per_cycle:
        about = f"memory grows by {size(report.memory.per_cycle)} per {report.unit}: {about}"
    if report.said.waits:
        about += f" (watched for {report.said.waits})"
    return plain(labelled(report.verdict, f"{about}."))


def _quoted(report: Report) -> Explanation | None:
    """The trainer's explanation, if it is recorded and the report found nothing more severe."""
    said = report.said.explanation
    return said if said is not None and said.verdict == report.verdict else None


def leak_line(report: Report) -> str:
    """The leak of a report in one line; empty if there is none."""
    if report.finding is None:
        return ""
    return labelled("leak", finding_lines(report.finding, report.unit)[_first(report.finding)])


def _first(finding: FoundLeak) -> int:
    """The first line about what leaks: after those about phase and growth, if there are others."""
    before = bool(finding.phase) + bool(finding.growth_bytes_per_cycle)
    named = finding.objects or finding.sizes or finding.past_bound or finding.graphs
    return before if named else max(0, before - 1)


def finding_lines(finding: FoundLeak, unit: str) -> list[str]:
    """The lines about the leak that was found."""
    lines = [f"Phase: {finding.phase}"] if finding.phase else []
    if finding.growth_bytes_per_cycle:
        lines.append(f"Growth: {size_change(finding.growth_bytes_per_cycle)} per {unit}")
    for name, judged in finding.objects.items():
        lines.append(f"{name} count: {judged.baseline:.0f} -> {judged.current:.0f} ({judged.reason})")
    for name, judged in finding.sizes.items():
        rise = f"{size(judged.baseline)} -> {size(judged.current)}"
        lines.append(f"{name} size: {rise} ({size_change(judged.per_cycle)}/{unit}, {judged.reason})")
    for name, held in finding.past_bound.items():
        lines.append(f"{name} buffer: {size(held.nbytes)}, past its bound of {size(held.full_bytes or 0)}")
    for name, tensors in finding.graphs.items():
        lines.append(f"{name} buffer: {tensors:.0f} tensors hold the autograd graph they were computed with")
        lines.append("Remedy: store `tensor.detach().cpu()`, or `.item()` for a number")
    return [*lines, f"Started at {unit} {finding.since}"]


def verdict(judged: Judgement) -> str:
    """The verdict, in capitals if it is bad, and its reason."""
    return f"{_shouted(judged.verdict)}: {judged.reason}" if judged.reason else _shouted(judged.verdict)


def _shouted(word: Word) -> str:
    return word.upper() if word == "leak" else word


def _plain(section: Section) -> Section:
    """The section with control characters of names escaped."""
    return Section(
        plain(section.title, _LONGEST_LINE),
        section.columns,
        [tuple(plain(cell, _LONGEST_CELL) for cell in row) for row in section.rows],
        [plain(line, _LONGEST_LINE) for line in section.lines],
    )


def _finding(report: Report) -> Section:
    lines = [headline(report)]
    if (quoted := _quoted(report)) is not None:
        lines = narrative(quoted).splitlines()
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
    """That the count of a class is older than its point."""
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
    """The first and the last of the rows; None stands for those between that are omitted."""
    if not most_rows or len(rows) <= most_rows:
        return [*rows]
    head = most_rows // 2
    return [*rows[:head], None, *rows[head - most_rows :]]


def _growth(report: Report) -> Section:
    judged = report.memory
    percent = f" ({judged.change / judged.baseline:+.1%})" if judged.baseline else ""
    rows = [
        ("Baseline", size(judged.baseline)),
        ("Current", size(judged.current)),
        ("Growth", f"{size_change(judged.change)}{percent}"),
        *_rates(report),
        ("Verdict", _shouted(report.verdict)),
    ]
    return Section("MEMORY GROWTH ANALYSIS", ("RAM usage", ""), rows)


def _rates(report: Report) -> list[tuple[str, str]]:
    """The growth that the verdict is about: the trainer's own figure, and that of the cycles."""
    said, per_cycle = _quoted(report), report.memory.per_cycle
    rates = []
    if said is not None and said.verdict != "healthy":
        rates.append(("Growth per minute", size_change(said.growth_bytes_per_minute)))
    if not rates or (per_cycle and report.unit != "minute"):
        rates.append((f"Growth per {report.unit}", size_change(per_cycle)))
    return rates


def _objects(report: Report) -> Section:
    rows = [
        (name, from_to(judged.baseline, judged.current), verdict(judged))
        for name, judged in report.objects.items()
    ]
    return Section("OBJECT COUNT CHANGES", ("Type", "Change", "Verdict"), rows)


def _sizes(report: Report) -> Section:
    unit = report.unit
    rows = [
        (
            name,
            size(judged.current),
            size_change(judged.change),
            f"{size_change(judged.per_cycle)}/{unit}",
            verdict(judged),
        )
        for name, judged in report.sizes.items()
    ]
    leaking = [name for name, judged in report.sizes.items() if judged.verdict == "leak"]
    lines = [f"WARNING: Potential memory leaks detected in: {leaking}"] if leaking else []
    return Section("NAMED OBJECTS", ("Object", "Size", "Growth", "Rate", "Verdict"), rows, lines)


def _large(report: Report) -> Section:
    rows = [
        (held.name, held.kind, size(held.nbytes), size(held.full_bytes) if held.full_bytes else "")
        for held in report.large
    ]
    return Section("LARGE OBJECTS", ("Name", "Kind", "Size", "When full"), rows)


def _largest(report: Report) -> Section:
    rows = [(name, size(nbytes)) for name, nbytes in report.largest]
    return Section("LARGEST SINGLE OBJECTS, WHATEVER HOLDS THEM", ("Type", "Size"), rows)


def as_text(report: Report, most_rows: int) -> str:
    """The report in plain words and aligned columns."""
    return "\n".join([title(report), "", *_written(sections(report, most_rows))])


def trend_lines(report: Report, most_rows: int) -> list[str]:
    """The trend across cycles and the analysis of the growth, as in the whole report."""
    return _written(map(_plain, (_trend(report, most_rows), _growth(report))))


def _written(parts: Iterable[Section]) -> list[str]:
    return [
        line
        for section in parts
        for line in (_RULE, section.title, _RULE, *_aligned(section), *section.lines, "")
    ]


def _aligned(section: Section) -> list[str]:
    if not section.rows:
        return []
    head = any(section.columns)
    rows = [section.columns, *section.rows] if head else section.rows
    width = len(section.columns)
    # The last of several columns is a verdict, in words.
    return aligned(rows, range(1, max(2, width - 1)), head=head)
