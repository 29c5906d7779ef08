"""Panel presets: a panel reads as title, queries, unit and description, and looks like its siblings."""

from collections.abc import Sequence

from . import colors
from .empty import NO_TRAINER, Empty
from .panel import Json, Panel, Query, lines

_LEGEND = {"displayMode": "table", "placement": "bottom", "showLegend": True}
_TOOLTIP = {"mode": "multi", "sort": "desc"}


def time_series(
    title: str,
    queries: Sequence[Query],
    unit: str,
    description: str,
    *,
    empty: Empty = NO_TRAINER,
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
        # A line above a band that holds nothing would look like something.
        "lineWidth": 0 if stacked else 1,
        "fillOpacity": 60 if bars or stacked else 0,
        "showPoints": "auto" if steps else "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked or bars else "none"},
        "axisSoftMin": floor,
        "axisSoftMax": top,
    }
    defaults: Json = {
        "unit": unit,
        "decimals": decimals,
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
        empty=empty,
        overrides=[*overrides, *lines(queries)],
        options={
            "legend": {**_LEGEND, "calcs": ["sum"] if bars else ["lastNotNull", "max"]},
            "tooltip": _TOOLTIP,
        },
        width=width,
        height=height,
    )


def stat(
    title: str,
    query: Query,
    unit: str,
    description: str,
    *,
    empty: Empty = NO_TRAINER,
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
    defaults: Json = {
        "unit": unit,
        "decimals": decimals,
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
    return Panel(
        "stat",
        title,
        description,
        [query],
        _present(defaults),
        options=options,
        empty=empty,
        width=width,
        height=height,
    )


def bar_gauge(
    title: str,
    query: Query,
    unit: str,
    description: str,
    *,
    empty: Empty = NO_TRAINER,
    thresholds: Json = colors.NEUTRAL,
    top: float | None = None,
    decimals: int | None = None,
    width: int = 8,
    height: int = 8,
) -> Panel:
    """One bar a series, the latest value."""
    defaults: Json = {
        "unit": unit,
        "decimals": decimals,
        "min": 0,
        "max": top,
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
    return Panel(
        "bargauge",
        title,
        description,
        [query],
        _present(defaults),
        options=options,
        empty=empty,
        width=width,
        height=height,
    )


def state_timeline(
    title: str,
    query: Query,
    states: dict[int, tuple[str, str]],
    description: str,
    *,
    empty: Empty = NO_TRAINER,
    width: int = 24,
    height: int = 5,
) -> Panel:
    """Which state each series was in, over time; `states` maps a value to its name and colour."""
    defaults: Json = {
        "unit": "none",
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
    return Panel(
        "state-timeline",
        title,
        description,
        [query],
        defaults,
        options=options,
        empty=empty,
        width=width,
        height=height,
    )


def heatmap(
    title: str, query: Query, unit: str, description: str, *, empty: Empty = NO_TRAINER, width: int = 12
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
    defaults: Json = {"custom": {"scaleDistribution": {"type": "linear"}}}
    return Panel("heatmap", title, description, [query], defaults, options=options, empty=empty, width=width)


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
