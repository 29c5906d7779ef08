"""From rows of panels to the JSON document that Grafana loads."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grafanalib import core
from grafanalib._gen import DashboardEncoder

from . import colors, navigation
from .navigation import DATASOURCE
from .panel import Json, Panel, identity
from .queries import alerts, trainers

# 39 is Grafana 10.3's; older versions load it as it is, newer ones migrate it silently.
SCHEMA_VERSION = 39
COLUMNS = 24
SHARED_CROSSHAIR = 1
REFRESH_INTERVALS = ["5s", "15s", "30s", "1m", "5m"]
# What grafanalib writes for old versions of Grafana, in dashboards and in panels.
LEGACY_KEYS = {
    *("__inputs", "hideControls", "rows", "sharedCrosshair", "style"),
    *("error", "hideTimeOverride", "transparent"),
}


@dataclass(frozen=True)
class Row:
    """Lines of panels that belong together; a row without title has no heading.

    Panels without a width share the rest of their line. All panels of a line have the height of the highest.
    """

    title: str
    lines: Sequence[Sequence[Panel]]
    collapsed: bool = False


def two_a_line(*panels: Panel) -> list[Sequence[Panel]]:
    """Lines of two panels, of one at the end of an odd number."""
    return [panels[first : first + 2] for first in range(0, len(panels), 2)]


@dataclass(frozen=True)
class Dashboard:
    """A page about one trainer, about several, or about the stack."""

    uid: str
    description: str
    rows: Sequence[Row]
    start: str = "now-1h"

    @property
    def title(self) -> str:
        """The title, also in links to it."""
        return navigation.TITLES[self.uid]

    def render(self) -> Json:
        """The document, with nothing but plain JSON in it."""
        marked = [panel.identity for row in self.rows for line in row.lines for panel in line if panel.marked]
        dashboard = core.Dashboard(
            title=f"Heapwatch / {self.title}",
            uid=self.uid,
            description=self.description,
            tags=[navigation.TAG],
            templating=core.Templating(navigation.variables(self.uid)),
            annotations=core.Annotations(_annotations(marked) if self.uid != navigation.STACK else []),
            links=navigation.links_between_dashboards(self.uid),
            panels=list(_place(self.rows)),
            time=core.Time(self.start, "now"),
            refresh="30s",
            timezone="browser",
            schemaVersion=SCHEMA_VERSION,
            graphTooltip=SHARED_CROSSHAIR,
            editable=False,
            version=1,
        )
        document: Json = json.loads(json.dumps(dashboard, cls=DashboardEncoder), object_hook=_modern)
        return {**document, "timepicker": {"refresh_intervals": REFRESH_INTERVALS}}


def _modern(document: Json) -> Json:
    """A part of the document without what is not set; the lowest threshold has the value null."""
    return {
        key: value
        for key, value in document.items()
        if key not in LEGACY_KEYS and (value is not None or key == "value")
    }


def _place(rows: Sequence[Row]) -> Iterator[Json]:
    y = 0
    for row in rows:
        heading = 1 if row.title else 0
        panels, height = _lay(row.lines, y + heading)
        if row.title:
            yield _heading(row, y, panels if row.collapsed else [])
        if not row.collapsed:
            yield from panels
            y += height
        y += heading


def _lay(lines: Sequence[Sequence[Panel]], y: int) -> tuple[list[Json], int]:
    """Lay each line from left to right; returns the panels and the height of all lines."""
    placed: list[Json] = []
    top = y
    for line in lines:
        height = max(panel.height for panel in line)
        x = 0
        for panel, width in zip(line, _widths(line), strict=True):
            placed.append(panel.render(core.GridPos(h=height, w=width, x=x, y=top)))
            x += width
        top += height
    return placed, top - y


def _widths(line: Sequence[Panel]) -> list[int]:
    """Each panel's own width, or an even share of what is left; the first ones take the rest."""
    open_ended = sum(not panel.width for panel in line)
    left = COLUMNS - sum(panel.width for panel in line)
    shares = iter([left // open_ended + (place < left % open_ended) for place in range(open_ended)])
    return [panel.width or next(shares) for panel in line]


def _heading(row: Row, y: int, panels: list[Any]) -> Json:
    return {
        "type": "row",
        "title": row.title,
        "id": identity(f"row {row.title}"),
        "collapsed": row.collapsed,
        "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
        "panels": panels,
    }


def _annotations(panels: Sequence[int]) -> list[dict[str, Any]]:
    """Leaks and critical alerts, cleanups and restarts on the panels with these ids.

    Each is a moment. Grafana fills the time between two samples of one event on every panel, so a query gives
    one sample an event.
    """
    major = "leak or critical alert of {{instance}}"
    of_each = (
        ("Leaks and critical alerts", alerts.MAJOR_ALERT_STARTS, colors.CRITICAL, "Alert", major),
        ("Cleanups", alerts.CLEANUP_EVENTS, colors.GOOD, "Cleanup", "{{action}} cleanup of {{instance}}"),
        ("Restarts", trainers.RESTARTS, colors.SKY, "Start", "{{instance}} started"),
    )
    return [
        {
            "name": name,
            "datasource": DATASOURCE,
            "enable": True,
            "hide": False,
            "iconColor": color,
            "expr": expression,
            "step": "60s",
            "titleFormat": title,
            "textFormat": text,
            "tagKeys": "instance",
            "useValueForTime": expression == trainers.RESTARTS,  # its value is a time in milliseconds
            "filter": {"exclude": False, "ids": list(panels)},
        }
        for name, expression, color, title, text in of_each
    ]
