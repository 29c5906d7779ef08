"""Time series: lines, areas, stacks, dashed limits, thresholds, annotations and a legend with values."""

from html import escape
from typing import Any

from heapwatch_viewer.fields import Field, color
from heapwatch_viewer.panels.base import Answers, Chart, painted
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.reduce import CALCULATIONS, reduced
from heapwatch_viewer.timerange import Window

LEGEND_ROWS = 40  # a legend longer than this is cut, and says so


def render(answers: Answers) -> Chart:
    """The chart of a time series panel."""
    shown = [(series, field) for series, field in answers.fields() if not _hidden(field)]
    units = _units([field for _, field in shown])
    lines = [
        _line(index, series, field, units, answers.window) for index, (series, field) in enumerate(shown)
    ]
    options: dict[str, Any] = {
        "xAxis": time_axis(answers.window),
        "yAxis": [_axis(index, unit, shown) for index, unit in enumerate(units)],
        "series": lines,
    }
    if lines:
        lines[0] |= marks(answers) | _threshold_lines(shown)
    return Chart(options, units, _legend(answers, shown))


def time_axis(window: Window) -> dict[str, Any]:
    """The shared time axis, in milliseconds."""
    return {"type": "time", "min": window.start * 1000, "max": window.end * 1000}


def marks(answers: Answers) -> dict[str, Any]:
    """Annotations as lines, and as areas where they last."""
    lines = [
        {"xAxis": mark.start * 1000, "lineStyle": {"color": mark.color}, "name": mark.text}
        for mark in answers.marks
    ]
    areas = [
        [
            {
                "xAxis": mark.start * 1000,
                "itemStyle": {"color": mark.color, "opacity": 0.03},
                "name": mark.text,
            },
            {"xAxis": mark.end * 1000},
        ]
        for mark in answers.marks
        if mark.end > mark.start
    ]
    return {"markLine": {"data": lines}, "markArea": {"data": areas}}


def _hidden(field: Field) -> bool:
    return bool(field.custom.get("hideFrom", {}).get("viz"))


def _units(fields: list[Field]) -> list[dict[str, Any]]:
    """The distinct units, one axis each: the first is on the left."""
    units: list[dict[str, Any]] = []
    for field in fields:
        unit = field.unit.as_dict(field.decimals)
        if unit not in units:
            units.append(unit)
    return units[:2] or [{"steps": [[1, ""]], "multiply": 1.0, "decimals": None}]


def _axis(index: int, unit: dict[str, Any], shown: list[tuple[Series, Field]]) -> dict[str, Any]:
    mine = [field for _, field in shown if field.unit.as_dict(field.decimals) == unit]
    lows = [field.minimum for field in mine if field.minimum is not None]
    highs = [field.maximum for field in mine if field.maximum is not None]
    log = any(field.custom.get("scaleDistribution", {}).get("type") == "log" for field in mine)
    soft_lows = [field.custom["axisSoftMin"] for field in mine if field.custom.get("axisSoftMin") is not None]
    soft_highs = [
        field.custom["axisSoftMax"] for field in mine if field.custom.get("axisSoftMax") is not None
    ]
    axis: dict[str, Any] = {"type": "log" if log else "value", "position": "left" if index == 0 else "right"}
    if lows:
        axis["min"] = min(lows)
    if highs:
        axis["max"] = max(highs)
    if soft_lows:
        axis["softMin"] = min(soft_lows)
    if soft_highs:
        axis["softMax"] = max(soft_highs)
    return axis | {"scale": not lows}


def _line(
    index: int, series: Series, field: Field, units: list[dict[str, Any]], window: Window
) -> dict[str, Any]:
    custom = field.custom
    unit = field.unit.as_dict(field.decimals)
    paint = painted(field, index, reduced(series.points, "lastNotNull"))
    stacked = custom.get("stacking", {}).get("mode", "none") != "none"
    dashed = custom.get("lineStyle", {}).get("fill") == "dash"
    bars = custom.get("drawStyle") == "bars"
    fill = custom.get("fillOpacity", 0)
    spans = custom.get("spanNulls") is True
    line: dict[str, Any] = {
        "name": field.name,
        "type": "bar" if bars else "line",
        "yAxisIndex": units.index(unit) if unit in units else 0,
        "data": [
            [moment * 1000, value if value == value else None]
            for moment, value in _gaps(series, window, spans)
        ],
        "itemStyle": {"color": paint},
        "connectNulls": spans,
    }
    if not bars:
        line |= {
            "symbol": "circle" if custom.get("showPoints") == "always" else "none",
            "symbolSize": custom.get("pointSize", 5),
            "step": "end" if custom.get("lineInterpolation", "").startswith("step") else False,
            "lineStyle": {
                "color": paint,
                "width": 0 if custom.get("drawStyle") == "points" else custom.get("lineWidth", 1),
                "type": "dashed" if dashed else "solid",
            },
        }
        if fill:
            line["areaStyle"] = {"color": paint, "opacity": fill / 100}
    if stacked:
        line["stack"] = str(custom["stacking"].get("group", "A"))
    return line


def _gaps(series: Series, window: Window, spans: bool) -> list[tuple[float, float]]:
    """The points, with a break where Prometheus had nothing to say for more than a step."""
    if spans:
        return series.points
    broken: list[tuple[float, float]] = []
    for moment, value in series.points:
        if broken and moment - broken[-1][0] > 1.5 * window.step:
            broken.append((broken[-1][0] + window.step, float("nan")))
        broken.append((moment, value))
    return broken


def _threshold_lines(shown: list[tuple[Series, Field]]) -> dict[str, Any]:
    for _, field in shown:
        mode = field.custom.get("thresholdsStyle", {}).get("mode", "off")
        if mode != "off" and not field.percentage_steps:
            limits = [
                {"yAxis": limit, "lineStyle": {"color": color(paint), "type": "dashed"}, "name": "threshold"}
                for limit, paint in field.steps
                if limit != float("-inf")
            ]
            return {"markLine": {"data": limits}}
    return {}


def _legend(answers: Answers, shown: list[tuple[Series, Field]]) -> str:
    legend = answers.panel.options.get("legend", {})
    if legend.get("showLegend") is False or legend.get("displayMode") == "hidden":
        return ""
    listed = [
        (index, series, field)
        for index, (series, field) in enumerate(shown)
        if not field.custom.get("hideFrom", {}).get("legend")
    ]
    calculations = [name for name in legend.get("calcs", ()) if name in CALCULATIONS]
    heads = "".join(f"<th>{CALCULATIONS[name][0]}</th>" for name in calculations)
    rows = []
    for index, series, field in listed[:LEGEND_ROWS]:
        paint = painted(field, index, reduced(series.points, "lastNotNull"))
        dash = "dashed" if field.custom.get("lineStyle", {}).get("fill") == "dash" else "solid"
        values = "".join(
            f"<td>{escape(field.text(reduced(series.points, name)))}</td>" for name in calculations
        )
        rows.append(
            f'<tr data-series="{escape(field.name, quote=True)}"><td class="legend-name">'
            f'<i style="border-color:{paint}; border-style:{dash}"></i>{escape(field.name)}</td>{values}</tr>'
        )
    if len(listed) > LEGEND_ROWS:
        rows.append(f'<tr><td class="muted">and {len(listed) - LEGEND_ROWS} more</td></tr>')
    kind = "legend-table" if calculations and legend.get("displayMode") == "table" else "legend-list"
    head = f"<tr><th></th>{heads}</tr>" if kind == "legend-table" else ""
    return f'<table class="{kind}">{head}{"".join(rows)}</table>'
