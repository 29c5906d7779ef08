"""A report as plain text and as Markdown."""

from __future__ import annotations

from heapwatch.report.document import Section, headline, sections, title
from heapwatch.report.findings import Report

_WIDTH = 78


def as_text(report: Report, most_rows: int) -> str:
    """The report in plain words and aligned columns."""
    parts = [title(report), ""]
    for section in sections(report, most_rows):
        parts += ["=" * _WIDTH, section.title, "=" * _WIDTH, *_aligned(section), *section.lines, ""]
    return "\n".join(parts)


def as_markdown(report: Report, most_rows: int) -> str:
    """The report as Markdown with tables."""
    parts = [f"# {_escaped(title(report))}", "", f"**{_escaped(headline(report))}**", ""]
    for section in sections(report, most_rows):
        parts += [f"## {_escaped(section.title)}", ""]
        if section.rows:
            parts.append(_row(section.columns))
            parts.append(_row(["---"] + ["---:"] * (len(section.columns) - 1)))
            parts += [_row([_escaped(cell) for cell in cells]) for cells in section.rows]
            parts.append("")
        for line in section.lines:
            marker = "" if line.startswith("- ") else ("" if line.endswith(":") else "- ")
            parts.append(marker + line[: len(line) - len(line.lstrip("- "))] + _escaped(line.lstrip("- ")))
            parts += [""] if line.endswith(":") else []
        parts += [""] if section.lines else []
    return "\n".join(parts)


def _aligned(section: Section) -> list[str]:
    if not section.rows:
        return []
    rows = [section.columns, *section.rows] if any(section.columns) else section.rows
    widths = [max(len(row[column]) for row in rows) for column in range(len(section.columns))]
    lines = [_joined(row, widths) for row in rows]
    if rows[0] is section.columns:
        lines.insert(1, " ".join("-" * width for width in widths).rstrip())
    return lines


def _joined(row: tuple[str, ...], widths: list[int]) -> str:
    first, *others = row
    last = len(widths) - 1
    cells = [first.ljust(widths[0])]
    for column, cell in enumerate(others, 1):
        words = column == last and last > 1
        cells.append(cell.ljust(widths[column]) if words else cell.rjust(widths[column]))
    return " ".join(cells).rstrip()


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    for character in "\\|*_`[]<#":
        text = text.replace(character, f"\\{character}")
    return text
