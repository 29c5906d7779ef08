"""The part of Grafana's dashboard model that the generated dashboards use."""

from dataclasses import dataclass, field
from typing import Any

from heapwatch_viewer.timerange import seconds_of


@dataclass(frozen=True)
class PanelQuery:
    """One query of a panel."""

    expression: str
    legend: str
    ref_id: str
    instant: bool
    least_step: int


@dataclass(frozen=True)
class Panel:
    """One panel; `raw` keeps options and field configuration as Grafana writes them.

    Attributes:
        grid: column (0..23), row, width and height in grid cells.

    """

    id: int
    kind: str
    title: str
    description: str
    grid: tuple[int, int, int, int]
    targets: tuple[PanelQuery, ...]
    raw: dict[str, Any] = field(compare=False, repr=False)

    @property
    def options(self) -> dict[str, Any]:
        """The panel type's own options."""
        return dict(self.raw.get("options", {}))

    @property
    def transformations(self) -> list[dict[str, Any]]:
        """Transformations, in order, without those that are switched off."""
        return [step for step in self.raw.get("transformations", []) if not step.get("disabled")]


@dataclass(frozen=True)
class Row:
    """A heading with the panels below it; the first row of a dashboard may have no title."""

    title: str
    collapsed: bool
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A template variable."""

    name: str
    label: str
    kind: str
    query: str
    regex: str
    multi: bool
    include_all: bool
    all_value: str
    hidden: bool
    default: tuple[str, ...]


@dataclass(frozen=True)
class Annotation:
    """Marks on the time axis, from a query; on the panels with these ids, on all when there are none."""

    name: str
    color: str
    expression: str
    title: str
    text: str
    value_is_time: bool
    step: int
    enabled: bool
    panels: tuple[int, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard as the viewer shows it."""

    uid: str
    title: str
    description: str
    tags: tuple[str, ...]
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...]
    links: tuple[dict[str, Any], ...]
    start: str
    end: str
    refresh: str


def parse(document: dict[str, Any]) -> Dashboard:
    """Turn Grafana's JSON into a Dashboard. Raises KeyError where a field is missing."""
    span = document.get("time", {})
    return Dashboard(
        uid=document["uid"],
        title=document["title"],
        description=document.get("description") or "",
        tags=tuple(document.get("tags", ())),
        rows=_rows(document["panels"]),
        variables=tuple(_variable(item) for item in document.get("templating", {}).get("list", ())),
        annotations=tuple(
            _annotation(item)
            for item in document.get("annotations", {}).get("list", ())
            if item.get("expr") or item.get("target", {}).get("expr")
        ),
        links=tuple(document.get("links", ())),
        start=span.get("from", "now-6h"),
        end=span.get("to", "now"),
        refresh=document.get("refresh") or "",
    )


def _rows(panels: list[dict[str, Any]]) -> tuple[Row, ...]:
    rows = [Row("", False, ())]
    for item in sorted(panels, key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"])):
        if item["type"] == "row":
            inside = tuple(_panel(child) for child in item.get("panels", ()))
            rows.append(Row(item.get("title", ""), bool(item.get("collapsed")), inside))
        else:
            last = rows.pop()
            rows.append(Row(last.title, last.collapsed, (*last.panels, _panel(item))))
    return tuple(row for row in rows if row.panels)


def _panel(item: dict[str, Any]) -> Panel:
    place = item["gridPos"]
    return Panel(
        id=item["id"],
        kind=item["type"],
        title=item.get("title", ""),
        description=item.get("description") or "",
        grid=(place["x"], place["y"], place["w"], place["h"]),
        targets=tuple(_target(target) for target in item.get("targets", ()) if not target.get("hide")),
        raw=item,
    )


def _target(item: dict[str, Any]) -> PanelQuery:
    return PanelQuery(
        expression=item["expr"],
        legend=item.get("legendFormat") or "",
        ref_id=item.get("refId", "A"),
        instant=bool(item.get("instant")) and not item.get("range"),
        least_step=seconds_of(item.get("interval") or "0s"),
    )


def _variable(item: dict[str, Any]) -> Variable:
    query = item.get("query", "")
    current = item.get("current", {}).get("value", ())
    return Variable(
        name=item["name"],
        label=item.get("label") or item["name"],
        kind=item["type"],
        query=query.get("query", "") if isinstance(query, dict) else query,
        regex=item.get("regex") or "",
        multi=bool(item.get("multi")),
        include_all=bool(item.get("includeAll")),
        all_value=item.get("allValue") or "",
        hidden=item.get("hide") == 2,
        default=tuple(current) if isinstance(current, list) else ((current,) if current else ()),
    )


def _annotation(item: dict[str, Any]) -> Annotation:
    return Annotation(
        name=item["name"],
        color=item.get("iconColor") or "blue",
        expression=item.get("expr") or item["target"]["expr"],
        title=item.get("titleFormat") or item["name"],
        text=item.get("textFormat") or "",
        value_is_time=bool(item.get("useValueForTime")),
        step=seconds_of(item.get("step") or "0s"),
        enabled=bool(item.get("enable", True)),
        panels=tuple(item.get("filter", {}).get("ids", ())),
    )
