"""State timelines: one lane a series, one block for each stretch of the same state."""

from html import escape
from typing import Any

from heapwatch_viewer.fields import Field, color
from heapwatch_viewer.panels.base import Answers, Chart
from heapwatch_viewer.panels.time_series import time_axis
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.units import write

UNMAPPED = "#8e8e8e"


def render(answers: Answers) -> Chart:
    """The chart; each block is [lane, start ms, end ms] with its text and colour."""
    shown = list(answers.fields())
    merged = bool(answers.panel.options.get("mergeValues", True))
    blocks: list[dict[str, Any]] = []
    seen: dict[str, str] = {}
    for lane, (series, field) in enumerate(shown):
        for start, end, value in _stretches(series, answers.window.end):
            text, paint = _state(field, value, merged)
            seen.setdefault(text, paint)
            blocks.append(
                {"value": [lane, start * 1000, end * 1000], "name": text, "itemStyle": {"color": paint}}
            )
    options = {
        "xAxis": time_axis(answers.window),
        "yAxis": [{"type": "category", "data": [field.name for _, field in shown], "inverse": True}],
        "series": [{"type": "custom", "name": "states", "data": blocks}],
    }
    return Chart(options, [], _legend(answers, seen))


def _state(field: Field, value: float, merged: bool) -> tuple[str, str]:
    """Text and colour; as in Grafana, merged values in colour mode `thresholds` are ranges, not mappings."""
    if merged and field.color_mode == "thresholds" and field.steps:
        limits = [limit for limit, _ in field.steps]
        place = sum(value >= limit for limit in limits) - 1
        if place == 0 and len(limits) > 1:
            return f"< {write(limits[1], field.unit)}", color(field.steps[0][1])
        return f"{write(limits[place], field.unit)}+", color(field.steps[place][1])
    return field.text(value), field.paint(value) or field.color or UNMAPPED


def _stretches(series: Series, last: float) -> list[tuple[float, float, float]]:
    """(start, end, value) of each run of equal values; a missing sample ends a run; nothing after `last`."""
    runs: list[tuple[float, float, float]] = []
    for moment, value in series.points:
        if runs and runs[-1][2] == value and moment - runs[-1][1] <= 0.5 * series.step:
            runs[-1] = (runs[-1][0], moment + series.step, value)
        else:
            runs.append((moment, moment + series.step, value))
    return [(start, min(end, last), value) for start, end, value in runs]


def _legend(answers: Answers, seen: dict[str, str]) -> str:
    if answers.panel.options.get("legend", {}).get("showLegend") is False:
        return ""
    items = "".join(
        f'<tr><td class="legend-name"><i style="border-color:{paint}"></i>{escape(text)}</td></tr>'
        for text, paint in seen.items()
    )
    return f'<table class="legend-list">{items}</table>'
