"""Panel presets: a panel is declared by title, queries, unit and description.

The text of an empty panel follows from its queries, the decimals from its unit.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from . import colors
from .empty import meaning
from .panel import NUMBER, Json, Panel, Query, Unit, fixed, override_matching
from .promql import STEP

_TOOLTIP = {"mode": "multi", "sort": "desc"}
AXIS_WIDTH = 72  # pixels: the same in every chart, so that the times of charts below each other agree
_LATEST = {"calcs": ["lastNotNull"], "fields": "", "values": False}

Words = colors.Words
Style = Literal["lines", "areas", "bars", "steps"]


def lines(
    title: str,
    queries: Query | Sequence[Query],
    unit: Unit,
    description: str,
    *,
    empty: str = "",
    style: Style = "lines",
    floor: float | None = 0,
    overrides: Sequence[Json] = (),
    width: int = 0,
    height: int = 8,
    marked: bool = False,
) -> Panel:
    """A chart over time: `areas` add up, `bars` are amounts in a step, `steps` hold their value."""
    asked = (queries,) if isinstance(queries, Query) else tuple(queries)
    adds_up = style in ("areas", "bars")
    if style == "bars":
        asked = tuple(replace(query, interval=STEP) for query in asked)
    custom: Json = {
        "drawStyle": "bars" if style == "bars" else "line",
        "lineInterpolation": "stepAfter" if style == "steps" else "linear",
        # The line of an area that is empty would look like a small value.
        "lineWidth": 0 if style == "areas" else 1,
        "fillOpacity": 60 if adds_up else 0,
        "showPoints": "auto" if style == "steps" else "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if adds_up else "none"},
        "axisWidth": AXIS_WIDTH,
        "axisSoftMin": floor,
    }
    defaults: Json = {
        "unit": unit.name,
        "color": {"mode": "palette-classic"},
        "custom": {key: value for key, value in custom.items() if value is not None},
        "thresholds": colors.NEUTRAL,
        "mappings": [],
    }
    return Panel(
        "timeseries",
        title,
        description,
        asked,
        defaults,
        overrides=[*overrides, *_limit_overrides(asked)],
        options={"tooltip": _TOOLTIP},
        legend_values=("sum",) if style == "bars" else ("lastNotNull", "max"),
        empty=empty or meaning(asked[0].expression),
        width=width,
        height=height,
        marked=marked,
    )


def number(
    title: str,
    expression: str,
    unit: Unit,
    description: str,
    *,
    legend: str = "",
    words: Words | None = None,
    thresholds: Json = colors.NEUTRAL,
    filled: bool = False,
    empty: str = "",
    width: int = 0,
    height: int = 3,
) -> Panel:
    """One number, as it is now; with a legend also what it is of, with `words` a text for some values."""
    query = Query(expression, legend, instant=True)
    defaults: Json = {
        **unit.field(),
        "color": {"mode": "thresholds"},
        "thresholds": thresholds,
        "mappings": colors.value_mappings(words) if words else [],
        **({"displayName": query.display_name} if legend else {}),
    }
    options = {
        "colorMode": "background" if filled else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "value_and_name" if legend else "value",
        "reduceOptions": _LATEST,
    }
    return Panel(
        "stat",
        title,
        description,
        [query],
        defaults,
        options=options,
        empty=empty or meaning(expression),
        width=width,
        height=height,
    )


def alarm(title: str, expression: str, color: str, description: str, width: int = 0) -> Panel:
    """A count that should be 0: green at zero, this colour from one on."""
    thresholds = colors.judged(colors.GOOD, (1, color))
    return number(title, expression, NUMBER, description, thresholds=thresholds, filled=True, width=width)


def states(
    title: str, query: Query, words: Words, description: str, *, width: int = 0, height: int = 8
) -> Panel:
    """Which state each series was in, over time; `words` maps a value to its name and colour."""
    defaults: Json = {
        "unit": "none",
        # Colour by thresholds would draw their ranges and leave the value mappings out.
        "color": {"mode": "fixed", "fixedColor": colors.UNKNOWN},
        "mappings": colors.value_mappings(words),
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
    return Panel(
        "state-timeline",
        title,
        description,
        [query],
        defaults,
        options=options,
        empty=meaning(query.expression),
        width=width,
        height=height,
    )


# Limits are dashed lines that never set the scale: one far above the data would make the data a line at zero.
# Grafana has no such option, so it is decided in the query, once for the whole time range.
NEAR = 2  # A limit below so many times the highest value in the range is drawn.

_COLORS = {
    **colors.SEVERITIES,
    "growth": colors.CRITICAL,
    "memory": colors.CRITICAL,
    "capacity": colors.WARNING,
    "budget": colors.WARNING,
}


def limit(expression: str, level: str, legend: str) -> Query:
    """A limit, where `level` (a selector or an expression) comes near it in the time range.

    The legend ends in `limit`, after a severity or what it limits.
    """
    window = "$__range" if level.endswith("}") else f"$__range:{STEP}"
    highest = f"scalar(max(max_over_time({level}[{window}] @ end())))"
    most = f"max_over_time(({expression})[$__range:{STEP}] @ end())"
    return Query(f"({expression}) and {most} / {highest} < {NEAR}", legend)


def _limit_overrides(queries: Sequence[Query]) -> list[Json]:
    """The style of limits, by their legends: dashed, never stacked."""
    legends = " ".join(query.legend for query in queries)
    several = "{{severity}} limit" in legends
    names = [
        name for name in _COLORS if f"{name} limit" in legends or (several and name in colors.SEVERITIES)
    ]
    return [_dashed(f"{name} limit$", _COLORS[name]) for name in names]


def _dashed(pattern: str, color: str) -> Json:
    return override_matching(
        pattern,
        color=fixed(color),
        custom__lineStyle={"fill": "dash", "dash": [10, 10]},
        custom__lineWidth=2,
        custom__fillOpacity=0,
        custom__stacking={"group": "limits", "mode": "none"},
    )
