"""What a panel is: queries, field options, overrides, and the JSON they become.

grafanalib 0.7.1 still writes Grafana 6 shapes for some panels (`fieldOptions`, heatmap `cards`), so every
type goes through its generic panel, and the modern part (`fieldConfig`, `options`) is written here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grafanalib import core

from . import colors
from .empty import Empty
from .variables import DATASOURCE

Json = dict[str, Any]

# grafanalib writes these for old Grafana versions.
LEGACY_TARGET_KEYS = ("query", "target", "intervalFactor", "metric", "step", "hide")
LEGACY_PANEL_KEYS = (
    "cacheTimeout",
    "editable",
    "error",
    "height",
    "hideTimeOverride",
    "minSpan",
    "span",
    "transparent",
)

# The shapes are those of this Grafana: without it, migrations would look for shapes of Grafana 6.
PLUGIN_VERSION = "9.4.0"

BYTES = "decbytes"
SECONDS = "s"
SHARE = "percentunit"
COUNT = "short"


@dataclass(frozen=True)
class Query:
    """One PromQL query, over the range or at an `instant`; `interval` is the smallest step, `15s` say."""

    expression: str
    legend: str = ""
    instant: bool = False
    format: str = "time_series"
    interval: str = ""

    def render(self, ref_id: str) -> Json:
        """The target of a panel."""
        target = core.Target(
            expr=self.expression,
            legendFormat=self.legend,
            format=self.format,
            instant=self.instant,
            interval=self.interval,
            refId=ref_id,
            datasource=DATASOURCE,
        ).to_json_data()
        kept = {key: value for key, value in target.items() if key not in LEGACY_TARGET_KEYS and value != ""}
        return {**kept, "range": not self.instant, "editorMode": "code"}


@dataclass(frozen=True)
class Panel:
    """A panel before it has a place: `width` in 24ths of the page, `height` in units of 30 pixels.

    `empty` is what it says when its queries find nothing, which its description explains.
    """

    kind: str
    title: str
    description: str
    queries: Sequence[Query] = ()
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)
    transformations: Sequence[Json] = ()
    empty: Empty | None = None
    width: int = 12
    height: int = 8

    def render(self, identity: int, x: int, y: int) -> Json:
        """Grafana's JSON for the panel at this place of the grid."""
        panel = core.Panel(
            title=self.title,
            description=self.empty.explained(self.description) if self.empty else self.description,
            dataSource=DATASOURCE,
            targets=[query.render(chr(ord("A") + index)) for index, query in enumerate(self.queries)],
            transformations=list(self.transformations),
            gridPos=core.GridPos(h=self.height, w=self.width, x=x, y=y),
            id=identity,
            maxDataPoints=None,
        ).panel_json({"type": self.kind, "pluginVersion": PLUGIN_VERSION, "options": self.options})
        defaults = {**self.defaults, "noValue": self.empty.says} if self.empty else self.defaults
        panel["fieldConfig"] = {"defaults": defaults, "overrides": list(self.overrides)}
        return {
            key: value for key, value in panel.items() if key not in LEGACY_PANEL_KEYS and value is not None
        }


def override(name: str, **properties: Any) -> Json:
    """Properties of the field with this name; in keys `__` stands for the dot (`custom__lineWidth`)."""
    return _override({"id": "byName", "options": name}, properties)


def override_matching(pattern: str, **properties: Any) -> Json:
    """Properties of the fields whose names match a regular expression."""
    return _override({"id": "byRegexp", "options": f"/{pattern}/"}, properties)


def _override(matcher: Json, properties: Json) -> Json:
    return {
        "matcher": matcher,
        "properties": [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()],
    }


def fixed(color: str) -> Json:
    """A colour that does not depend on the value."""
    return {"mode": "fixed", "fixedColor": color}


def lines(queries: Sequence[Query]) -> list[Json]:
    """The look of limits and forecasts: a series whose legend ends so is a dashed line, never stacked."""
    looks = {
        "{{severity}} limit": colors.SEVERITIES,
        "growth limit": {"growth": colors.CRITICAL},
        "kill limit": {"kill": colors.CRITICAL},
        "capacity limit": {"capacity": colors.WARNING},
    }
    drawn = [
        _dashed(f"{name} limit$", color)
        for ending, names in looks.items()
        if any(query.legend.endswith(ending) for query in queries)
        for name, color in names.items()
    ]
    if any(query.legend.endswith("in one hour") for query in queries):
        drawn.append(_dashed("in one hour$", colors.SKY))
    return drawn


def _dashed(pattern: str, color: str) -> Json:
    return override_matching(
        pattern,
        color=fixed(color),
        custom__lineStyle={"fill": "dash", "dash": [10, 10]},
        custom__lineWidth=2,
        custom__fillOpacity=0,
        custom__stacking={"group": "limits", "mode": "none"},
    )
