"""Annotations on a time axis: a line where one starts, a shade while it lasts."""

from itertools import groupby
from typing import Any

from heapwatch.viewer.panels.base import Mark
from heapwatch.viewer.timerange import Window

SHADE = 0.06  # opacity


def drawn(marks: list[Mark], window: Window) -> dict[str, Any]:
    """The marks as ECharts' `markLine` and `markArea`.

    Marks of one colour that overlap are one shade, or ten alerts would hide the lines below them. What began
    before the window has no line: its start is not in sight.
    """
    ordered = sorted(marks, key=lambda mark: (mark.color, mark.start))
    lines = [
        {"xAxis": start * 1000, "lineStyle": {"color": paint}, "name": ", ".join(mark.text for mark in group)}
        for (paint, start), group in groupby(ordered, key=lambda mark: (mark.color, mark.start))
        if start > window.start
    ]
    areas = [
        [
            {"xAxis": start * 1000, "itemStyle": {"color": paint, "opacity": SHADE}},
            {"xAxis": end * 1000},
        ]
        for paint, start, end in _merged(ordered)
    ]
    return {"markLine": {"data": lines}, "markArea": {"data": areas}}


def _merged(ordered: list[Mark]) -> list[tuple[str, float, float]]:
    """(colour, start, end) of what lasts, overlapping ones of a colour made one."""
    shades: list[tuple[str, float, float]] = []
    for mark in ordered:
        if mark.end <= mark.start:
            continue
        if shades and shades[-1][0] == mark.color and mark.start <= shades[-1][2]:
            paint, start, end = shades.pop()
            shades.append((paint, start, max(end, mark.end)))
        else:
            shades.append((mark.color, mark.start, mark.end))
    return shades
