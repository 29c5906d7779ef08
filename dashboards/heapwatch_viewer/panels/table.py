"""Tables: answers joined by their labels, with the transformations that the generated dashboards use."""

import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

from heapwatch_viewer.fields import Field, field_for, ink
from heapwatch_viewer.model import Panel
from heapwatch_viewer.panels.base import Answers, Html, nothing, reduced
from heapwatch_viewer.prometheus import Series

ROWS = 200  # a table longer than this is cut, and says so

Row = dict[str, Any]


@dataclass
class Table:
    """Rows by column name; `ref_ids` tells which query a value column came from."""

    columns: list[str]
    rows: list[Row]
    ref_ids: dict[str, str] = field(default_factory=dict)


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
        self.field: Field = field_for(answers.panel.raw, Series({}, [], name=name))
        self._answers = answers
        self._name = name
        self._measured = name in table.ref_ids
        options = self.field.custom.get("cellOptions", {})
        self._kind = options.get("type", "auto")
        is_number = self._measured and not self.field.mappings and self._kind != "gauge"
        self._side = "number" if is_number else "word"
        self._wraps = " wraps" if options.get("wrapText") else ""

    def head(self) -> str:
        """The heading; a column without a width takes its share of what is left."""
        width = self.field.custom.get("width")
        style = f' style="width:{width}px"' if width else ""
        return f'<th class="{self._side}"{style}>{escape(self.field.name)}</th>'

    def cell(self, row: Row) -> str:
        """The column's cell in `row`."""
        value = row.get(self._name)
        text = escape(self.field.text(value)) if value is not None or self._measured else ""
        if self._wraps:  # a path is broken between its parts
            text = re.sub(r"\.(?=\w)", ".<wbr>", text)
        paint = self.field.paint(value)
        style = ""
        if paint and self._kind == "color-background":
            style = f' style="background:{paint}; color:#111"'
        elif paint and self._kind == "color-text":
            style = f' style="color:{ink(paint)}"'
        elif self._kind == "gauge":
            text = self._gauge(value, text, paint)
        # On a phone a row is a card: there each value carries the name of its column, and one that is missing
        # is left out.
        name = escape(self.field.name, quote=True)
        missing = "" if value is not None else " missing"
        shown = self._linked(text, row)
        return f'<td class="{self._side}{self._wraps}{missing}" data-name="{name}"{style}>{shown}</td>'

    def _gauge(self, value: float | None, text: str, paint: str | None) -> str:
        if value is None or not self.field.maximum:
            return text
        share = min(max(value / self.field.maximum, 0.0), 1.0)
        bar = f'<div class="bar" style="width:{share:.0%}; background:{paint}"></div>'
        return f'<div class="cell-gauge"><div class="bar-track">{bar}</div><span>{text}</span></div>'

    def _linked(self, text: str, row: Row) -> str:
        """`text`, already escaped, as the first link of the column."""
        if not self.field.links:
            return text
        link = self.field.links[0]
        values = {f"__data.fields.{key}": str(item) for key, item in row.items()}
        address, title = self._answers.link(link["url"], values), link.get("title", "")
        return f'<a href="{escape(address, quote=True)}" title="{escape(title, quote=True)}">{text}</a>'


def tabulate(panel: Panel, series: list[Series]) -> Table:
    """The answers of `panel` as one table: merged, organized and sorted."""
    table = _merge([_of_query(panel, target.ref_id, series) for target in panel.targets])
    for step in panel.raw.get("transformations", ()):
        if step["id"] == "organize":
            table = _organize(table, step["options"])
    for sort in panel.options.get("sortBy", ()):
        _sort(table, sort["displayName"], bool(sort.get("desc")))
    return table


def _of_query(panel: Panel, ref_id: str, series: list[Series]) -> Table:
    """The answer to one query: a column a label, then `Value` (`Value #A` beside other queries)."""
    column = f"Value #{ref_id}" if len(panel.targets) > 1 else "Value"
    mine = [one for one in series if one.ref_id == ref_id]
    labels = sorted({label for one in mine for label in one.labels})
    rows: list[Row] = [{**one.labels, column: reduced(one.points)} for one in mine]
    return Table([*labels, column], rows, {column: ref_id})


def _merge(tables: list[Table]) -> Table:
    """Join rows that agree in every label that they share."""
    columns: list[str] = []
    ref_ids: dict[str, str] = {}
    for table in tables:
        ref_ids |= table.ref_ids
        columns += [name for name in table.columns if name not in columns]
    rows: list[Row] = []
    for row in (row for table in tables for row in table.rows):
        for known in rows:
            shared = [name for name in row if name in known and name not in ref_ids]
            free = not any(name in known for name in row if name in ref_ids)
            if shared and free and all(row[name] == known[name] for name in shared):
                known.update(row)
                break
        else:
            rows.append(dict(row))
    columns.sort(key=lambda name: name in ref_ids)  # values last
    return Table(columns, rows, ref_ids)


def _organize(table: Table, options: Row) -> Table:
    """Leave out, order and rename columns."""
    excluded = options.get("excludeByName", {})
    order = options.get("indexByName", {})
    renamed = options.get("renameByName", {})
    kept = [name for name in table.columns if not excluded.get(name)]
    kept.sort(key=lambda name: order.get(name, len(order) + table.columns.index(name)))
    rows = [{renamed.get(name, name): row[name] for name in kept if name in row} for row in table.rows]
    ref_ids = {renamed.get(name, name): ref_id for name, ref_id in table.ref_ids.items()}
    return Table([renamed.get(name, name) for name in kept], rows, ref_ids)


def _sort(table: Table, name: str, descending: bool) -> None:
    """Sort the rows by a column, those without a value last."""
    present = [row for row in table.rows if row.get(name) is not None]
    present.sort(key=lambda row: row[name], reverse=descending)
    table.rows = present + [row for row in table.rows if row.get(name) is None]
