"""Tables: instant queries joined by their labels, with Grafana's transformations."""

from html import escape
from typing import Any

from heapwatch_viewer import documents
from heapwatch_viewer.fields import Field, field_for
from heapwatch_viewer.panels.base import Answers, Html, anchor
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.transformations import Table, tabulate

ROWS = 200  # a table longer than this is cut, and says so
GAUGE_WIDTH = 120  # pixels


def render(answers: Answers) -> Html:
    """The table as HTML."""
    table = tabulate(answers.panel, answers.series)
    if not table.rows:
        no_value = answers.panel.raw.get("fieldConfig", {}).get("defaults", {}).get("noValue") or "No data"
        return Html(f'<div class="empty">{escape(no_value)}</div>')
    fields = {name: _field(answers, name, table) for name in table.columns}
    columns = [name for name in table.columns if not fields[name].custom.get("hidden")]
    head = "".join(_head(fields[name], name in table.ref_ids) for name in columns)
    body = "".join(
        "<tr>"
        + "".join(_cell(answers, fields[name], name, row, name in table.ref_ids) for name in columns)
        + "</tr>"
        for row in table.rows[:ROWS]
    )
    more = (
        f'<div class="muted">and {len(table.rows) - ROWS} more rows</div>' if len(table.rows) > ROWS else ""
    )
    return Html(f'<table class="data"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}')


def _field(answers: Answers, name: str, table: Table) -> Field:
    return field_for(answers.panel.raw, Series({}, [], name=name, ref_id=table.ref_ids.get(name, "")))


def _head(field: Field, measured: bool) -> str:
    """The heading; a column without a width takes its share of what is left."""
    width = field.custom.get("width")
    if not width and field.custom.get("cellOptions", {}).get("type") == "gauge":
        width = GAUGE_WIDTH
    style = f' style="width:{width}px; min-width:{width}px"' if width else ""
    side = ' class="number"' if measured else ""
    return f"<th{side}{style}>{escape(field.name)}</th>"


def _cell(answers: Answers, field: Field, name: str, row: dict[str, Any], measured: bool) -> str:
    value = row.get(name)
    number = value if isinstance(value, float) else None
    if isinstance(value, str) or (value is None and not measured):
        text = escape(value or "")
        if value in documents.alerts() and not field.links:
            text = f'<a href="{documents.runbook(value)}" title="Runbook">{text}</a>'
    else:
        text = escape(field.text(number))
    paint = field.paint(number)
    options = field.custom.get("cellOptions", {})
    style = ""
    if paint and options.get("type") == "color-background":
        style = f"background:{paint}; color:#111"
    elif paint and options.get("type") == "color-text":
        style = f"color:{paint}"
    elif options.get("type") == "gauge" and number is not None and field.maximum:
        share = min(max(number / field.maximum, 0.0), 1.0)
        text = f'<div class="cell-gauge" style="width:{share:.0%}; background:{paint}"></div>{text}'
    values = {f"__data.fields.{key}": str(item) for key, item in row.items()}
    values |= {f'__data.fields["{key}"]': str(item) for key, item in row.items()}
    values |= {"__value.text": str(value), "__value.raw": str(value)}
    side = "number" if number is not None else ""
    return f'<td class="{side}" style="{style}">{anchor(answers, field.links, values, text)}</td>'
