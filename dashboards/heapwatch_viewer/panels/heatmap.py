"""Heatmaps of Prometheus histograms: one lane a bucket, darker where more observations fell."""

import math
from typing import Any

from heapwatch_viewer.panels.base import Answers, Chart
from heapwatch_viewer.panels.time_series import time_axis
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.units import unit_of, write


def render(answers: Answers) -> Chart:
    """The chart; cells are [time ms, bucket, count], cumulative buckets taken apart."""
    buckets = sorted((series for series in answers.series if "le" in series.labels), key=_bound)
    defaults = answers.panel.raw.get("fieldConfig", {}).get("defaults", {})
    axis_unit = unit_of(answers.panel.options.get("yAxis", {}).get("unit") or defaults.get("unit") or "")
    below: dict[float, float] = {}
    cells: list[list[float]] = []
    for lane, series in enumerate(buckets):
        counts = dict(series.points)
        for moment, count in counts.items():
            inside = count - below.get(moment, 0.0)
            if inside > 0:
                cells.append([moment * 1000, lane, inside])
        below = counts
    names = [
        "+Inf" if math.isinf(_bound(series)) else f"≤ {write(_bound(series), axis_unit)}"
        for series in buckets
    ]
    options: dict[str, Any] = {
        "xAxis": time_axis(answers.window),
        "yAxis": [{"type": "category", "data": names}],
        "series": [
            {"type": "heatmap", "name": "observations", "data": cells, "step": answers.window.step * 1000}
        ],
        "visualMap": {"min": 0, "max": max((cell[2] for cell in cells), default=1.0)},
    }
    return Chart(options)


def _bound(series: Series) -> float:
    return float(series.labels["le"])
