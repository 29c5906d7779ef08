"""Panel presets: a panel reads as title, queries, unit and description, and looks like its siblings.

grafanalib 0.7.1 still writes Grafana 6 shapes for some panels (`fieldOptions`, heatmap `cards`), so every type
goes through its generic panel, and the modern part (`fieldConfig`, `options`) is written here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grafanalib import core

from . import colors
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
    """A panel before it has a place: `width` in 24ths of the page, `height` in units of 30 pixels."""

    kind: str
    title: str
    description: str
    queries: Sequence[Query] = ()
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)
    transformations: Sequence[Json] = ()
    width: int = 12
    height: int = 8

    def render(self, identity: int, x: int, y: int) -> Json:
        """Grafana's JSON for the panel at this place of the grid."""
        panel = core.Panel(
            title=self.title,
            description=self.description,
            dataSource=DATASOURCE,
            targets=[query.render(chr(ord("A") + index)) for index, query in enumerate(self.queries)],
            transformations=list(self.transformations),
            gridPos=core.GridPos(h=self.height, w=self.width, x=x, y=y),
            id=identity,
            maxDataPoints=None,
        ).panel_json({"type": self.kind, "options": self.options})
        panel["fieldConfig"] = {"defaults": self.defaults, "overrides": list(self.overrides)}
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


def colored(**names: str) -> list[Json]:
    """One fixed colour a series, by its name."""
    return [override(name, color=fixed(color)) for name, color in names.items()]


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


_LEGEND = {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]}
_TOOLTIP = {"mode": "multi", "sort": "desc"}


def time_series(
    title: str,
    queries: Sequence[Query],
    unit: str,
    description: str,
    *,
    empty: str = "No data",
    stacked: bool = False,
    bars: bool = False,
    steps: bool = False,
    decimals: int | None = None,
    floor: float | None = 0,
    top: float | None = None,
    overrides: Sequence[Json] = (),
    links: Sequence[Json] = (),
    width: int = 12,
    height: int = 8,
) -> Panel:
    """Lines over time.

    `stacked` areas add up, `bars` show amounts in an interval, `steps` show values that hold until the next.
    """
    custom = {
        "drawStyle": "bars" if bars else "line",
        "lineInterpolation": "stepAfter" if steps else "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if bars else 35 if stacked else 8,
        "showPoints": "auto" if steps else "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked or bars else "none"},
        "axisSoftMin": floor,
        "axisSoftMax": top,
    }
    defaults = {
        "unit": unit,
        "decimals": decimals,
        "noValue": empty,
        "color": {"mode": "palette-classic"},
        "custom": _present(custom),
        "thresholds": colors.NEUTRAL,
        "mappings": [],
        "links": list(links),
    }
    return Panel(
        "timeseries",
        title,
        description,
        queries,
        defaults=_present(defaults),
        overrides=[*overrides, *lines(queries)],
        options={"legend": _LEGEND, "tooltip": _TOOLTIP},
        width=width,
        height=height,
    )


def stat(
    title: str,
    query: Query,
    unit: str,
    description: str,
    *,
    empty: str = "No data",
    thresholds: Json = colors.NEUTRAL,
    mappings: Sequence[Json] = (),
    background: bool = False,
    text: str = "value",
    trend: bool = True,
    decimals: int | None = None,
    width: int = 4,
    height: int = 4,
) -> Panel:
    """One number, the latest; `text` is `value`, `name` or `value_and_name`."""
    defaults = {
        "unit": unit,
        "decimals": decimals,
        "noValue": empty,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds,
        "mappings": list(mappings),
    }
    options = {
        "colorMode": "background" if background else "value",
        "graphMode": "area" if trend and not query.instant else "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": text,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return Panel("stat", title, description, [query], _present(defaults), (), options, (), width, height)


def bar_gauge(
    title: str,
    query: Query,
    unit: str,
    description: str,
    *,
    empty: str = "No data",
    thresholds: Json = colors.NEUTRAL,
    top: float | None = None,
    decimals: int | None = None,
    width: int = 8,
    height: int = 8,
) -> Panel:
    """One bar a series, the latest value."""
    defaults = {
        "unit": unit,
        "decimals": decimals,
        "min": 0,
        "max": top,
        "noValue": empty,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds,
        "mappings": [],
    }
    options = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return Panel("bargauge", title, description, [query], _present(defaults), (), options, (), width, height)


def state_timeline(
    title: str,
    query: Query,
    states: dict[int, tuple[str, str]],
    description: str,
    *,
    empty: str = "No data",
    width: int = 24,
    height: int = 5,
) -> Panel:
    """Which state each series was in, over time; `states` maps a value to its name and colour."""
    defaults = {
        "unit": "none",
        "noValue": empty,
        "color": {"mode": "thresholds"},
        "thresholds": colors.thresholds(colors.UNKNOWN),
        "mappings": colors.value_mappings(states),
        "custom": {"lineWidth": 0, "fillOpacity": 85},
    }
    options = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel("state-timeline", title, description, [query], defaults, (), options, (), width, height)


def heatmap(
    title: str, query: Query, unit: str, description: str, *, empty: str = "No data", width: int = 12
) -> Panel:
    """The buckets of a histogram over time; the query sums increases by `le` in format `heatmap`."""
    options = {
        "calculate": False,
        "color": {
            "mode": "scheme",
            "scheme": "Blues",
            "steps": 64,
            "reverse": False,
            "exponent": 0.5,
            "fill": colors.BLUE,
        },
        "yAxis": {"axisPlacement": "left", "unit": unit, "reverse": False},
        "rowsFrame": {"layout": "auto"},
        "cellGap": 1,
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "tooltip": {"show": True, "yHistogram": False},
        "exemplars": {"color": colors.WARNING},
        "showValue": "never",
    }
    defaults: Json = {"noValue": empty, "custom": {"scaleDistribution": {"type": "linear"}}}
    return Panel("heatmap", title, description, [query], defaults, (), options, (), width)


def text(title: str, content: str, description: str, *, width: int = 24, height: int = 3) -> Panel:
    """A few lines of Markdown."""
    return Panel(
        "text",
        title,
        description,
        options={"mode": "markdown", "content": content},
        width=width,
        height=height,
    )


def _present(document: Json) -> Json:
    return {key: value for key, value in document.items() if value is not None}
