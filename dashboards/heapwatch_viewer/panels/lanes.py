"""Lanes over time: state timelines, and heatmaps of Prometheus histograms."""

import math
from html import escape
from typing import Any

from heapwatch_viewer.panels.base import Answers, Chart
from heapwatch_viewer.panels.time_series import time_axis
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.units import unit_of, write

UNMAPPED = "#8e8e8e"


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
        "xAxis": time_axis(answers.window),
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


def heatmap(answers: Answers) -> Chart:
    """One lane a bucket, darker where more fell; cells are [time ms, bucket, count], not cumulative."""
    buckets = sorted(answers.series, key=_bound)
    axis_unit = unit_of(answers.panel.options.get("yAxis", {}).get("unit", ""))
    below: dict[float, float] = {}
    cells: list[list[float]] = []
    for lane, series in enumerate(buckets):
        counts = dict(series.points)
        for moment, count in counts.items():
            inside = count - below.get(moment, 0.0)
            if inside > 0:
                cells.append([moment * 1000, lane, inside])
        below = counts
    bounds = map(_bound, buckets)
    names = ["+Inf" if math.isinf(bound) else f"≤ {write(bound, axis_unit)}" for bound in bounds]
    step = answers.window.step * 1000
    return Chart(
        {
            "xAxis": time_axis(answers.window),
            "yAxis": [{"type": "category", "data": names}],
            "series": [{"type": "heatmap", "name": "observations", "data": cells, "step": step}],
            "visualMap": {"min": 0, "max": max((cell[2] for cell in cells), default=1.0)},
        }
    )


def _bound(series: Series) -> float:
    return float(series.labels["le"])
