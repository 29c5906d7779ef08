"""Panel types: each turns the answers to a panel's queries into a chart or into HTML."""

from collections.abc import Callable

from heapwatch_viewer.panels import lanes, stat, table, time_series
from heapwatch_viewer.panels.base import Answers, Chart, Html, text

RENDERERS: dict[str, Callable[[Answers], Chart | Html]] = {
    "timeseries": time_series.render,
    "stat": stat.render,
    "table": table.render,
    "state-timeline": lanes.state_timeline,
    "heatmap": lanes.heatmap,
    "text": text,
}

__all__ = ["RENDERERS", "Answers", "Chart", "Html"]
