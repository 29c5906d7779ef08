"""Tables: instant queries joined by their labels, with Grafana's transformations."""

import re
from html import escape
from typing import Any

from heapwatch_viewer import documents
from heapwatch_viewer.fields import Field, field_for, ink
from heapwatch_viewer.panels.base import Answers, Html, anchor, nothing
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.transformations import Table, tabulate

ROWS = 200  # a table longer than this is cut, and says so


def render(answers: Answers) -> Html:
    """The table as HTML."""
    table = tabulate(answers.panel, answers.series)
    if not table.rows:
        return Html(nothing(answers.panel))
    columns = [_Column(answers, name, table) for name in table.columns]
    columns = [column for column in columns if not column.field.custom.get("hidden")]
    head = "".join(column.head() for column in columns)
    body = "".join(f"<tr>{''.join(column.cell(row) for column in columns)}</tr>" for row in table.rows[:ROWS])
    more = (
        f'<div class="muted">and {len(table.rows) - ROWS} more rows</div>' if len(table.rows) > ROWS else ""
    )
    size = " large" if answers.panel.options.get("cellHeight") == "lg" else ""
    return Html(
        f'<table class="data{size}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'
    )


class _Column:
    """One column: how its heading and its cells look."""

    def __init__(self, answers: Answers, name: str, table: Table) -> None:
        self.field: Field = field_for(
            answers.panel.raw, Series({}, [], name=name, ref_id=table.ref_ids.get(name, ""))
        )
        self._answers = answers
        self._name = name
        self._measured = name in table.ref_ids
        self._look = self.field.custom.get("cellOptions", {}).get("type", "auto")
        is_number = self._measured and not self.field.mappings and self._look != "gauge"
        self._side = "number" if is_number else "word"
        self._wraps = " wraps" if self.field.custom.get("cellOptions", {}).get("wrapText") else ""

    def head(self) -> str:
        """The heading; a column without a width takes its share of what is left."""
        width = self.field.custom.get("width")
        style = f' style="width:{width}px"' if width else ""
        return f'<th class="{self._side}"{style}>{escape(self.field.name)}</th>'

    def cell(self, row: dict[str, Any]) -> str:
        """The column's cell in `row`."""
        value = row.get(self._name)
        text = escape(self.field.text(value)) if value is not None or self._measured else ""
        if self._wraps:  # a path is broken between its parts
            text = re.sub(r"\.(?=\w)", ".<wbr>", text)
        paint = self.field.paint(value)
        style = ""
        if paint and self._look == "color-background":
            style = f' style="background:{paint}; color:#111"'
        elif paint and self._look == "color-text":
            style = f' style="color:{ink(paint)}"'
        elif self._look == "gauge":
            text = self._gauge(value, text, paint)
        # On a phone a row is a card: there each value carries the name of its column, and one that is missing
        # is left out.
        name = escape(self.field.name, quote=True)
        missing = "" if value is not None else " missing"
        shown = self._linked(text, value, row)
        return f'<td class="{self._side}{self._wraps}{missing}" data-name="{name}"{style}>{shown}</td>'

    def _gauge(self, value: float | None, text: str, paint: str | None) -> str:
        if value is None or not self.field.maximum:
            return text
        share = min(max(value / self.field.maximum, 0.0), 1.0)
        bar = f'<div class="bar" style="width:{share:.0%}; background:{paint}"></div>'
        return f'<div class="cell-gauge"><div class="bar-track">{bar}</div><span>{text}</span></div>'

    def _linked(self, text: str, value: Any, row: dict[str, Any]) -> str:
        if not self.field.links:
            known = isinstance(value, str) and value in documents.alerts()
            return f'<a href="{documents.runbook(value)}" title="Runbook">{text}</a>' if known else text
        values = {f"__data.fields.{key}": str(item) for key, item in row.items()}
        values |= {f'__data.fields["{key}"]': str(item) for key, item in row.items()}
        values |= {"__value.text": str(value), "__value.raw": str(value)}
        return anchor(self._answers, self.field.links, values, text)
