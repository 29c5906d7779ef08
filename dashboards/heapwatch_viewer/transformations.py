"""Answers made into a table, and the transformations that the generated dashboards use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from heapwatch_viewer.model import Panel
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.reduce import reduced

Row = dict[str, Any]


@dataclass
class Table:
    """Rows by column name; `ref_ids` tells which query a value column came from."""

    columns: list[str]
    rows: list[Row]
    ref_ids: dict[str, str] = field(default_factory=dict)


def tabulate(panel: Panel, series: list[Series]) -> Table:
    """The answers of `panel` as one table, its transformations applied in order, then its sorting.

    Raises:
        ValueError: a transformation is not one of those known here.

    """
    tables = _per_query(panel, series)
    for step in panel.transformations:
        if step["id"] not in _STEPS:
            raise ValueError(f"no transformation is called {step['id']!r}; known: {', '.join(_STEPS)}")
        tables = _STEPS[step["id"]](tables, step.get("options", {}))
    if not tables:
        return Table([], [])
    table = tables[0] if len(tables) == 1 else _merge(tables, {})[0]
    by = [
        {"field": sort["displayName"], "desc": sort.get("desc")} for sort in panel.options.get("sortBy", ())
    ]
    return _sort([table], {"sort": by})[0]


def _per_query(panel: Panel, series: list[Series]) -> list[Table]:
    """One table an instant query: a column a label, then `Value` (`Value #A` beside other queries).

    A range query gives one table a series: its times and, under its name, its values.
    """
    several = len(panel.targets) > 1
    tables: list[Table] = []
    for target in panel.targets:
        column = f"Value #{target.ref_id}" if several else "Value"
        mine = [one for one in series if one.ref_id == target.ref_id]
        if not target.instant:
            tables += [
                Table(
                    ["Time", one.name],
                    [{"Time": moment * 1000, one.name: value} for moment, value in one.points],
                    {one.name: target.ref_id},
                )
                for one in mine
            ]
            continue
        labels = sorted({label for one in mine for label in one.labels})
        rows: list[Row] = [
            {"Time": one.points[-1][0] * 1000 if one.points else None, **one.labels}
            | {column: reduced(one.points, "lastNotNull")}
            for one in mine
        ]
        tables.append(Table(["Time", *labels, column], rows, {column: target.ref_id}))
    return tables


def _merge(tables: list[Table], _: Row) -> list[Table]:
    """Join rows that agree in every column they share but the values and the time."""
    columns: list[str] = []
    ref_ids: dict[str, str] = {}
    for table in tables:
        ref_ids |= table.ref_ids
        columns += [name for name in table.columns if name not in columns]
    rows: list[Row] = []
    for table in tables:
        for row in table.rows:
            for known in rows:
                shared = [name for name in row if name in known and name not in ref_ids and name != "Time"]
                free = not any(name in known for name in row if name in ref_ids)
                if shared and free and all(row[name] == known[name] for name in shared):
                    known.update(row)
                    break
            else:
                rows.append(dict(row))
    values = [name for name in columns if name in ref_ids]
    return [Table([name for name in columns if name not in ref_ids] + values, rows, ref_ids)]


def _join(tables: list[Table], options: Row) -> list[Table]:
    """Outer join of all tables on one column."""
    key = options.get("byField", "Time")
    columns: list[str] = [key]
    ref_ids: dict[str, str] = {}
    rows: dict[Any, Row] = {}
    for number, table in enumerate(tables, start=1):
        ref_ids |= table.ref_ids
        names = {
            name: f"{name} {number}" if name in columns and name != key else name for name in table.columns
        }
        columns += [name for name in names.values() if name not in columns]
        for row in table.rows:
            rows.setdefault(row.get(key), {}).update({names[name]: value for name, value in row.items()})
    ordered = [rows[value] for value in sorted(rows, key=lambda value: (value is None, value))]
    return [Table(columns, ordered, ref_ids)]


def _organize(tables: list[Table], options: Row) -> list[Table]:
    """Leave out, order and rename columns."""
    excluded = {name for name, out in options.get("excludeByName", {}).items() if out}
    included = {name for name, shown in options.get("includeByName", {}).items() if shown}
    order = options.get("indexByName", {})
    renamed = {name: new for name, new in options.get("renameByName", {}).items() if new}
    result = []
    for table in tables:
        kept = [name for name in table.columns if name not in excluded and (not included or name in included)]
        kept.sort(key=lambda name: order.get(name, len(order) + table.columns.index(name)))
        rows = [{renamed.get(name, name): row[name] for name in kept if name in row} for row in table.rows]
        ref_ids = {renamed.get(name, name): ref_id for name, ref_id in table.ref_ids.items()}
        result.append(Table([renamed.get(name, name) for name in kept], rows, ref_ids))
    return result


def _sort(tables: list[Table], options: Row) -> list[Table]:
    for sort in reversed(options.get("sort", [])):
        name, descending = sort["field"], bool(sort.get("desc"))
        for table in tables:
            present = [row for row in table.rows if row.get(name) is not None]
            absent = [row for row in table.rows if row.get(name) is None]
            present.sort(key=lambda row: row[name], reverse=descending)
            table.rows = present + absent
    return tables


_STEPS: dict[str, Callable[[list[Table], Row], list[Table]]] = {
    "merge": _merge,
    "joinByField": _join,
    "organize": _organize,
    "sortBy": _sort,
}
