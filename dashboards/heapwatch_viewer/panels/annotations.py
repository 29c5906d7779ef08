"""Annotations on a time axis, as Grafana draws them: a line for a moment, else a region between two lines."""

from itertools import groupby
from typing import Any

from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.timerange import Window

FILL = 0.1  # opacity


def drawn(marks: list[Mark], window: Window) -> dict[str, Any]:
    """The marks as ECharts' `markLine` and `markArea`; ends outside of the window have no line."""
    ends = sorted(
        {(mark.color, moment, mark.text) for mark in marks for moment in (mark.start, mark.end)},
    )
    lines = [
        {
            "xAxis": moment * 1000,
            "lineStyle": {"color": paint},
            "name": ", ".join(text for _, _, text in group),
        }
        for (paint, moment), group in groupby(ends, key=lambda end: end[:2])
        if window.start < moment < window.end
    ]
    areas = [
        [
            {"xAxis": mark.start * 1000, "itemStyle": {"color": mark.color, "opacity": FILL}},
            {"xAxis": mark.end * 1000},
        ]
        for mark in marks
        if mark.end > mark.start
    ]
    return {"markLine": {"data": lines}, "markArea": {"data": areas}}
