"""Tables: one column a query, rows joined on the labels that all queries share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import colors
from .empty import meaning
from .panel import NUMBER, Json, Panel, Query, Unit, override


@dataclass(frozen=True)
class Column:
    """A column filled by an instant query, or by a label of one when `label` is given.

    A query whose value is not shown, only its labels, has no title. A `hidden` column serves the
    links of others.
    """

    title: str = ""
    expression: str = ""
    unit: Unit = NUMBER
    label: str = ""
    width: int | None = None
    cell: Json | None = None
    options: Json = field(default_factory=dict)
    hidden: bool = False

    def render(self) -> Json:
        """The override that gives the column its appearance."""
        properties: dict[str, Any] = {**self.unit.field(), "noValue": "-", **self.options}
        if self.hidden:
            properties["custom.hidden"] = True
        if self.width is not None:
            properties["custom.width"] = self.width
        if self.cell is not None:
            properties["custom.cellOptions"] = self.cell
        return override(self.title, **properties)


BACKGROUND = {"type": "color-background", "mode": "basic"}
GAUGE = {"type": "gauge", "mode": "basic"}
COLORED_TEXT = {"type": "color-text"}
WRAPPED = {"type": "auto", "wrapText": True}  # Grafana 11 and newer; older ones cut it


def table(
    title: str,
    columns: Sequence[Column],
    description: str,
    *,
    empty: str = "",
    sort_by: str | None = None,
    large: bool = False,
    width: int = 0,
    height: int = 8,
) -> Panel:
    """Columns in the given order; what is not named stays hidden.

    Labels that are not shown must be aggregated away by the queries, or they would split rows.
    """
    queries = [
        Query(column.expression, instant=True, format="table") for column in columns if column.expression
    ]
    fields = list(zip(_field_names(columns), columns, strict=True))
    organize = {
        "excludeByName": {"Time": True, **{name: True for name, column in fields if not column.title}},
        "indexByName": {name: index for index, (name, _) in enumerate(fields)},
        "renameByName": {name: column.title for name, column in fields if column.title not in ("", name)},
    }
    transformations: list[Json] = [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]
    return Panel(
        "table",
        title,
        description,
        queries,
        defaults={**_DEFAULTS, "unit": "none"},
        empty=empty or meaning(queries[0].expression),
        overrides=[column.render() for column in columns if column.title],
        options={
            **_OPTIONS,
            "cellHeight": "lg" if large else "sm",
            "sortBy": [{"displayName": sort_by, "desc": True}] if sort_by else [],
        },
        transformations=transformations,
        width=width,
        height=height,
    )


_DEFAULTS: Json = {
    "color": {"mode": "thresholds"},
    "thresholds": colors.NEUTRAL,
    "mappings": [],
    "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False, "inspect": False},
}
_OPTIONS: Json = {
    "showHeader": True,
    "cellHeight": "sm",
    "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
}


def _field_names(columns: Sequence[Column]) -> list[str]:
    """How Grafana names each column's field: `Value #B` for the second of several queries."""
    several = sum(bool(column.expression) for column in columns) > 1
    letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return [
        (f"Value #{next(letters)}" if several else "Value") if column.expression else column.label
        for column in columns
    ]
