"""A report in a terminal, with colours for verdicts."""

from __future__ import annotations

from rich.table import Table

from heapwatch.report.document import Section, sections, title
from heapwatch.report.findings import Report
from heapwatch.runtime.plain_text import console, literal


def show(report: Report, most_rows: int) -> None:
    """Print the report."""
    terminal = console()
    terminal.print(literal(title(report), style="bold"))
    for section in sections(report, most_rows):
        terminal.print()
        terminal.print(literal(section.title, style="bold cyan"))
        if section.rows:
            terminal.print(_table(section))
        for line in section.lines:
            terminal.print(literal(line, style=_style(line)))


def _table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, show_header=any(section.columns))
    for position, column in enumerate(section.columns):
        words = position == 0 or column == "Verdict"
        table.add_column(column, justify="left" if words else "right")
    for row in section.rows:
        table.add_row(*(literal(cell, style=_style(cell)) for cell in row))
    return table


def _style(text: str) -> str:
    return "bold red" if text.startswith(("LEAK", "WARNING")) else ""
