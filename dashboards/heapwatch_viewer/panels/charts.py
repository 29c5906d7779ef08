"""Charts over time: series with limits, annotations and a legend; state timelines."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any

from heapwatch_viewer.fields import Field
from heapwatch_viewer.panels.base import CALCULATIONS, Answers, Chart, Mark, painted, reduced
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

LEGEND_ROWS = 40  # a legend longer than this is cut, and says so
BAR = 4  # pixels
UNMAPPED = "#8e8e8e"  # a state without a colour

Point = tuple[float, float | None]


def time_series(answers: Answers) -> Chart:
    """Lines, areas, stacks and dashed limits."""
    shown = list(answers.fields())
    points = _points(shown)
    lines = [_line(index, *pair, points[index]) for index, pair in enumerate(shown)]
    if lines:
        lines[0] |= _annotations(answers.marks, answers.window)
    options = {"xAxis": _time_axis(answers.window), "yAxis": [_axis(shown)], "series": lines}
    unit = shown[0][1].unit.as_dict(shown[0][1].decimals) if shown else None
    return Chart(options, unit, _legend(answers, shown))


def _time_axis(window: Window) -> dict[str, Any]:
    """The shared time axis, in milliseconds."""
    return {"type": "time", "min": window.start * 1000, "max": window.end * 1000}


def _axis(shown: list[tuple[Series, Field]]) -> dict[str, Any]:
    """The value axis, which all series of a panel share."""
    custom = shown[0][1].custom if shown else {}
    names = {"axisWidth": "width", "axisSoftMin": "softMin", "axisSoftMax": "softMax"}
    given = {name: custom[option] for option, name in names.items() if custom.get(option) is not None}
    return {"type": "value", "position": "left", "scale": True, **given}


def _stack(field: Field) -> str:
    """The stack that a series belongs to, or nothing."""
    stacking = field.custom.get("stacking", {})
    return str(stacking.get("group", "A")) if stacking.get("mode", "none") != "none" else ""


def _points(shown: list[tuple[Series, Field]]) -> list[list[Point]]:
    """The points of each series, those of one stack on common moments."""
    points = [_with_gaps(series) for series, _ in shown]
    for stack in {_stack(field) for _, field in shown} - {""}:
        members = [index for index, (_, field) in enumerate(shown) if _stack(field) == stack]
        for index, aligned in zip(members, _on_common_moments([points[i] for i in members]), strict=True):
            points[index] = aligned
    return points


def _with_gaps(series: Series) -> list[Point]:
    """The points, with a break if Prometheus had no sample for more than a step."""
    broken: list[Point] = []
    for moment, value in series.points:
        if broken and moment - broken[-1][0] > 1.5 * series.step:
            broken.append((broken[-1][0] + series.step, None))
        broken.append((moment, value if value == value else None))
    return broken


def _on_common_moments(members: Sequence[list[Point]]) -> list[list[Point]]:
    """The members of a stack with the same moments each: ECharts stacks the nth on the nth."""
    moments = sorted({moment for points in members for moment, _ in points})
    known = [dict(points) for points in members]
    return [[(moment, values.get(moment)) for moment in moments] for values in known]


def _line(index: int, series: Series, field: Field, points: list[Point]) -> dict[str, Any]:
    custom = field.custom
    paint = painted(field, index, reduced(series.points))
    line: dict[str, Any] = {
        "name": field.name,
        "data": [[round(moment * 1000), value] for moment, value in points],
        "itemStyle": {"color": paint},
    }
    if _stack(field):
        line["stack"] = _stack(field)
    if custom.get("drawStyle") == "bars":
        return line | {"type": "bar", "barWidth": BAR}
    dashed = custom.get("lineStyle", {}).get("fill") == "dash"
    width = custom.get("lineWidth", 1)
    style = {"color": paint, "width": width and width + 0.5, "type": "dashed" if dashed else "solid"}
    steps = custom.get("lineInterpolation") == "stepAfter"
    line |= {"type": "line", "symbol": "none", "step": "end" if steps else False, "lineStyle": style}
    if custom.get("fillOpacity"):
        line["areaStyle"] = {"color": paint, "opacity": custom["fillOpacity"] / 100}
    return line


def _annotations(marks: list[Mark], window: Window) -> dict[str, Any]:
    """ECharts' `markLine`, as Grafana draws annotations: one line for all of a colour at a moment."""
    drawn = sorted({(mark.color, mark.moment, mark.text) for mark in marks})
    lines = [
        {
            "xAxis": moment * 1000,
            "lineStyle": {"color": paint},
            "name": ", ".join(text for _, _, text in group),
        }
        for (paint, moment), group in groupby(drawn, key=lambda mark: mark[:2])
        if window.start < moment < window.end
    ]
    return {"markLine": {"data": lines}}


def _legend(answers: Answers, shown: list[tuple[Series, Field]]) -> str:
    """A list with the values after each name."""
    calculations = answers.panel.options.get("legend", {}).get("calcs", ())
    rows = []
    for index, (series, field) in enumerate(shown[:LEGEND_ROWS]):
        name = escape(field.name, quote=True)
        paint = painted(field, index, reduced(series.points))
        dash = "dashed" if field.custom.get("lineStyle", {}).get("fill") == "dash" else "solid"
        line = f'<i style="border-color:{paint}; border-style:{dash}"></i>'
        texts = [(field.text(reduced(series.points, name)), CALCULATIONS[name][0]) for name in calculations]
        values = "".join(f"<td>{escape(f'{head}: {text}')}</td>" for text, head in texts)
        rows.append(
            f'<tr data-series="{name}"><td class="legend-name" title="{name}">{line}{name}</td>{values}</tr>'
        )
    if len(shown) > LEGEND_ROWS:
        rows.append(f'<tr><td class="muted">and {len(shown) - LEGEND_ROWS} more</td></tr>')
    return f'<table class="legend-list">{"".join(rows)}</table>'


def state_timeline(answers: Answers) -> Chart:
    """One lane a series; each block is [lane, start ms, end ms] with its text and colour."""
    shown = list(answers.fields())
    blocks: list[dict[str, Any]] = []
    seen: dict[str, str] = {}
    for lane, (series, field) in enumerate(shown):
        for start, end, value in _stretches(series, answers.window.end):
            text, paint = field.text(value), field.paint(value) or UNMAPPED
            seen.setdefault(text, paint)
            blocks.append(
                {"value": [lane, start * 1000, end * 1000], "name": text, "itemStyle": {"color": paint}}
            )
    options = {
        "xAxis": _time_axis(answers.window),
        "yAxis": [{"type": "category", "data": [field.name for _, field in shown], "inverse": True}],
        "series": [{"type": "custom", "name": "states", "data": blocks}],
    }
    items = "".join(
        f'<tr><td class="legend-name"><i style="border-color:{paint}"></i>{escape(text)}</td></tr>'
        for text, paint in seen.items()
    )
    return Chart(options, legend=f'<table class="legend-list">{items}</table>')


def _stretches(series: Series, last: float) -> list[tuple[float, float, float]]:
    """(start, end, value) of each run of equal values; a missing sample ends a run; nothing after `last`."""
    runs: list[tuple[float, float, float]] = []
    for moment, value in series.points:
        if runs and runs[-1][2] == value and moment - runs[-1][1] <= 0.5 * series.step:
            runs[-1] = (runs[-1][0], moment + series.step, value)
        else:
            runs.append((moment, moment + series.step, value))
    return [(start, min(end, last), value) for start, end, value in runs]
