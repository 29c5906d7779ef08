"""Time series: lines, areas, stacks, dashed limits, thresholds, annotations and a legend with values."""

from html import escape
from typing import Any

from heapwatch_viewer.fields import Field, color
from heapwatch_viewer.panels.annotations import drawn
from heapwatch_viewer.panels.base import Answers, Chart, painted
from heapwatch_viewer.panels.points import Point, filled, on_common_moments, with_gaps
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.reduce import CALCULATIONS, reduced
from heapwatch_viewer.timerange import Window

LEGEND_ROWS = 40  # a legend longer than this is cut, and says so
BAR = 4  # pixels


def render(answers: Answers) -> Chart:
    """The chart of a time series panel."""
    named = list(answers.fields())
    shown = [(series, field) for series, field in named if not _hidden(field)]
    units = _units([field for _, field in shown])
    lines = [
        _line(index, series, field, units, points)
        for index, ((series, field), points) in enumerate(
            zip(shown, _points(shown, answers.window), strict=True)
        )
    ]
    options: dict[str, Any] = {
        "xAxis": time_axis(answers.window),
        "yAxis": [_axis(index, unit, shown) for index, unit in enumerate(units)],
        "series": lines,
    }
    if lines:
        lines[0] |= _marks(answers, shown)
    placement = answers.panel.options.get("legend", {}).get("placement", "bottom")
    return Chart(options, units, _legend(answers, named), placement)


def time_axis(window: Window) -> dict[str, Any]:
    """The shared time axis, in milliseconds."""
    return {"type": "time", "min": window.start * 1000, "max": window.end * 1000}


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
    widths = [field.custom["axisWidth"] for field in mine if field.custom.get("axisWidth")]
    if widths:
        axis["width"] = max(widths)
    if lows:
        axis["min"] = min(lows)
    if highs:
        axis["max"] = max(highs)
    if soft_lows:
        axis["softMin"] = min(soft_lows)
    if soft_highs:
        axis["softMax"] = max(soft_highs)
    return axis | {"scale": not lows}


def _stack(field: Field) -> str:
    """The stack that a series belongs to, or nothing."""
    stacking = field.custom.get("stacking", {})
    return str(stacking.get("group", "A")) if stacking.get("mode", "none") != "none" else ""


def _points(shown: list[tuple[Series, Field]], window: Window) -> list[list[Point]]:
    """The points of each series, those of one stack on common moments."""
    points = [
        with_gaps(series, field.custom.get("spanNulls") is True)
        if field.in_place_of_gaps is None
        else filled(series, window, field.in_place_of_gaps)
        for series, field in shown
    ]
    for stack in {_stack(field) for _, field in shown} - {""}:
        members = [index for index, (_, field) in enumerate(shown) if _stack(field) == stack]
        for index, aligned in zip(members, on_common_moments([points[i] for i in members]), strict=True):
            points[index] = aligned
    return points


def _line(
    index: int, series: Series, field: Field, units: list[dict[str, Any]], points: list[Point]
) -> dict[str, Any]:
    custom = field.custom
    unit = field.unit.as_dict(field.decimals)
    paint = painted(field, index, reduced(series.points, "lastNotNull"))
    dashed = custom.get("lineStyle", {}).get("fill") == "dash"
    bars = custom.get("drawStyle") == "bars"
    fill, wide = custom.get("fillOpacity", 0), custom.get("lineWidth", 1)
    line: dict[str, Any] = {
        "name": field.name,
        "type": "bar" if bars else "line",
        "yAxisIndex": units.index(unit) if unit in units else 0,
        "data": [[round(moment * 1000), value] for moment, value in points],
        "itemStyle": {"color": paint},
    }
    if bars:
        line |= {"barWidth": BAR}
    else:
        line |= {
            "connectNulls": custom.get("spanNulls") is True,
            "symbol": "circle" if custom.get("showPoints") == "always" else "none",
            "symbolSize": custom.get("pointSize", 5),
            "step": "end" if custom.get("lineInterpolation", "").startswith("step") else False,
            "lineStyle": {
                "color": paint,
                "width": 0 if custom.get("drawStyle") == "points" or not wide else wide + 0.5,
                "type": "dashed" if dashed else "solid",
            },
        }
        if fill:
            line["areaStyle"] = {"color": paint, "opacity": fill / 100}
    if _stack(field):
        line["stack"] = _stack(field)
    return line


def _marks(answers: Answers, shown: list[tuple[Series, Field]]) -> dict[str, Any]:
    """Annotations, and the thresholds of the first series that asks for lines."""
    marks = drawn(answers.marks, answers.window)
    for _, field in shown:
        mode = field.custom.get("thresholdsStyle", {}).get("mode", "off")
        if mode != "off" and not field.percentage_steps:
            marks["markLine"]["data"] += [
                {"yAxis": limit, "lineStyle": {"color": color(paint)}, "name": "threshold"}
                for limit, paint in field.steps
                if limit != float("-inf")
            ]
            break
    return marks


def _legend(answers: Answers, named: list[tuple[Series, Field]]) -> str:
    """A table, or a list with the values after each name; what is not drawn stands there in grey."""
    legend = answers.panel.options.get("legend", {})
    if legend.get("showLegend") is False or legend.get("displayMode") == "hidden":
        return ""
    listed = [pair for pair in named if not pair[1].custom.get("hideFrom", {}).get("legend")]
    calculations = [name for name in legend.get("calcs", ()) if name in CALCULATIONS]
    table = bool(calculations) and legend.get("displayMode") == "table"
    drawn = 0
    rows = []
    for series, field in listed[:LEGEND_ROWS]:
        paint = painted(field, drawn, reduced(series.points, "lastNotNull"))
        drawn += not _hidden(field)
        texts = [(CALCULATIONS[name][0], field.text(reduced(series.points, name))) for name in calculations]
        values = "".join(f"<td>{escape(text if table else f'{head}: {text}')}</td>" for head, text in texts)
        rows.append(_legend_row(field, paint, values))
    if len(listed) > LEGEND_ROWS:
        rows.append(f'<tr><td class="muted">and {len(listed) - LEGEND_ROWS} more</td></tr>')
    heads = "".join(f"<th>{CALCULATIONS[name][0]}</th>" for name in calculations)
    head = f"<tr><th></th>{heads}</tr>" if table else ""
    return f'<table class="legend-{"table" if table else "list"}">{head}{"".join(rows)}</table>'


def _legend_row(field: Field, paint: str, values: str) -> str:
    name = escape(field.name, quote=True)
    dash = "dashed" if field.custom.get("lineStyle", {}).get("fill") == "dash" else "solid"
    target = 'class="hidden-series"' if _hidden(field) else f'data-series="{name}"'
    line = f'<i style="border-color:{paint}; border-style:{dash}"></i>'
    return f'<tr {target}><td class="legend-name" title="{name}">{line}{name}</td>{values}</tr>'
