"""The part of Grafana's dashboard model that the generated dashboards use, and the folder that holds them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heapwatch_viewer.timerange import seconds_of

HOME = "heapwatch-fleet"


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


@dataclass(frozen=True)
class Row:
    """A heading with the panels below it; the first row of a dashboard may have no title."""

    title: str
    collapsed: bool
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A template variable: the answer to a query, of which one value is chosen, or `several`, or all."""

    name: str
    label: str
    query: str
    regex: str
    hidden: bool
    several: bool


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
    panels: tuple[int, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard as the viewer shows it."""

    uid: str
    title: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...]
    links: tuple[dict[str, Any], ...]
    start: str
    end: str
    refresh: str


def load(folder: Path) -> dict[str, Dashboard]:
    """Every dashboard of `folder` by uid, the home dashboard first, then in the order of its links.

    Raises:
        ValueError: a file is no dashboard, naming the file and what is wrong; or there is none.

    """
    boards = {board.uid: board for board in map(_read, folder.glob("*.json"))}
    if HOME not in boards:
        raise ValueError(f"no dashboard {HOME} in {folder}: run `make generate`")
    linked = [link["url"].removeprefix("/d/") for link in boards[HOME].links]
    order = {uid: place for place, uid in enumerate([HOME, *linked])}
    return dict(sorted(boards.items(), key=lambda item: order.get(item[0], len(order))))


def _read(path: Path) -> Dashboard:
    try:
        return _dashboard(json.loads(path.read_text()))
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise ValueError(f"{path} is not a dashboard ({problem!r}): run `make generate`") from None


def _dashboard(document: dict[str, Any]) -> Dashboard:
    span = document.get("time", {})
    variables = document.get("templating", {}).get("list", ())
    return Dashboard(
        uid=document["uid"],
        title=document["title"],
        rows=_rows(document["panels"]),
        variables=tuple(_variable(item) for item in variables if item["type"] == "query"),
        annotations=tuple(_annotation(item) for item in document.get("annotations", {}).get("list", ())),
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
            rows.append(Row(item["title"], bool(item.get("collapsed")), inside))
        else:
            last = rows.pop()
            rows.append(Row(last.title, last.collapsed, (*last.panels, _panel(item))))
    return tuple(row for row in rows if row.panels)


def _panel(item: dict[str, Any]) -> Panel:
    place = item["gridPos"]
    return Panel(
        id=item["id"],
        kind=item["type"],
        title=item["title"],
        description=item.get("description") or "",
        grid=(place["x"], place["y"], place["w"], place["h"]),
        targets=tuple(_target(target) for target in item.get("targets", ())),
        raw=item,
    )


def _target(item: dict[str, Any]) -> PanelQuery:
    return PanelQuery(
        expression=item["expr"],
        legend=item.get("legendFormat") or "",
        ref_id=item["refId"],
        instant=bool(item.get("instant")),
        least_step=seconds_of(item.get("interval") or "0s"),
    )


def _variable(item: dict[str, Any]) -> Variable:
    return Variable(
        name=item["name"],
        label=item.get("label") or item["name"],
        query=item["query"]["query"],
        regex=item.get("regex") or "",
        hidden=item.get("hide") == 2,
        several=bool(item.get("multi")),
    )


def _annotation(item: dict[str, Any]) -> Annotation:
    return Annotation(
        name=item["name"],
        color=item["iconColor"],
        expression=item["expr"],
        title=item["titleFormat"],
        text=item["textFormat"],
        value_is_time=bool(item.get("useValueForTime")),
        step=seconds_of(item.get("step") or "0s"),
        panels=tuple(item.get("filter", {}).get("ids", ())),
    )
