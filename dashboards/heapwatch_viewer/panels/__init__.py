"""Panel types: each turns the answers to a panel's queries into a chart or into HTML."""

from collections.abc import Callable

from heapwatch_viewer.panels import charts, table
from heapwatch_viewer.panels.base import Answers, Chart, Html, stat

RENDERERS: dict[str, Callable[[Answers], Chart | Html]] = {
    "timeseries": charts.time_series,
    "stat": stat,
    "table": table.render,
    "state-timeline": charts.state_timeline,
}

__all__ = ["RENDERERS", "Answers", "Chart", "Html"]
