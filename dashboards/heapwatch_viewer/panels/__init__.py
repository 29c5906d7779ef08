"""One panel type a file: each turns the answers to a panel's queries into a chart or into HTML."""

from collections.abc import Callable

from heapwatch_viewer.panels import bar_gauge, heatmap, stat, state_timeline, table, text, time_series
from heapwatch_viewer.panels.base import Answers, Chart, Html

RENDERERS: dict[str, Callable[[Answers], Chart | Html]] = {
    "timeseries": time_series.render,
    "stat": stat.render,
    "gauge": bar_gauge.render,
    "bargauge": bar_gauge.render,
    "table": table.render,
    "state-timeline": state_timeline.render,
    "heatmap": heatmap.render,
    "text": text.render,
}

__all__ = ["RENDERERS", "Answers", "Chart", "Html"]
