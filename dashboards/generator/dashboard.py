"""From rows of panels to the JSON document that Grafana loads."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grafanalib import core
from grafanalib._gen import DashboardEncoder

from . import annotations, links, variables
from .panel import Json, Panel

# 39 is Grafana 10.3's; older versions load it as it is, newer ones migrate it silently.
SCHEMA_VERSION = 39
COLUMNS = 24
SHARED_CROSSHAIR = 1
REFRESH_INTERVALS = ["5s", "15s", "30s", "1m", "5m"]
LEGACY_KEYS = ("__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style", "id")


@dataclass(frozen=True)
class Row:
    """Panels that belong together, laid from left to right; a row without title has no heading."""

    title: str
    panels: Sequence[Panel]
    collapsed: bool = False


@dataclass(frozen=True)
class Dashboard:
    """A page; its variables job and instance are read from `variables_from`."""

    uid: str
    description: str
    rows: Sequence[Row]
    variables_from: str = "trainer_info"
    annotations: Sequence[Json] = field(default_factory=annotations.of_trainers)
    start: str = "now-3h"

    @property
    def title(self) -> str:
        """The title that links to it carry."""
        return links.TITLES[self.uid]

    def render(self) -> Json:
        """The document, with nothing but plain JSON in it."""
        dashboard = core.Dashboard(
            title=f"Heapwatch / {self.title}",
            uid=self.uid,
            description=self.description,
            tags=[links.TAG],
            templating=core.Templating(variables.of(self.variables_from)),
            annotations=core.Annotations(list(self.annotations)),
            links=links.between_dashboards(self.uid),
            panels=list(_place(self.rows)),
            time=core.Time(self.start, "now"),
            refresh="30s",
            timezone="browser",
            schemaVersion=SCHEMA_VERSION,
            graphTooltip=SHARED_CROSSHAIR,
            editable=False,
            version=1,
        ).to_json_data()
        modern = {key: value for key, value in dashboard.items() if key not in LEGACY_KEYS}
        modern["timepicker"] = {"refresh_intervals": REFRESH_INTERVALS}
        document: Json = json.loads(json.dumps(modern, cls=DashboardEncoder))
        return document


def identity(title: str) -> int:
    """A panel's id, from its title: it stays when others come and go, so links to a panel keep working."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1


def _place(rows: Sequence[Row]) -> Iterator[Json]:
    y = 0
    for row in rows:
        heading = 1 if row.title else 0
        panels, height = _flow(row.panels, y + heading)
        if row.title:
            yield _heading(row, y, panels if row.collapsed else [])
        if not row.collapsed:
            yield from panels
            y += height
        y += heading


def _flow(panels: Sequence[Panel], y: int) -> tuple[list[Json], int]:
    """Lay panels from left to right, line by line; returns them and the height of all lines."""
    placed: list[Json] = []
    x = line_height = height = 0
    for panel in panels:
        if x + panel.width > COLUMNS:
            height += line_height
            x = line_height = 0
        placed.append(panel.render(identity(panel.title), x, y + height))
        x += panel.width
        line_height = max(line_height, panel.height)
    return placed, height + line_height


def _heading(row: Row, y: int, panels: list[Any]) -> Json:
    return {
        "type": "row",
        "title": row.title,
        "id": identity(f"row {row.title}"),
        "collapsed": row.collapsed,
        "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
        "panels": panels,
    }
