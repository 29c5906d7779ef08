"""Panel types: each turns the answers to a panel's queries into a chart or into HTML."""

from collections.abc import Callable

from heapwatch_viewer.panels import lanes, table, time_series
from heapwatch_viewer.panels.base import Answers, Chart, Html, stat, text

RENDERERS: dict[str, Callable[[Answers], Chart | Html]] = {
    "timeseries": time_series.render,
    "stat": stat,
    "table": table.render,
    "state-timeline": lanes.state_timeline,
    "heatmap": lanes.heatmap,
    "text": text,
}

__all__ = ["RENDERERS", "Answers", "Chart", "Html"]
