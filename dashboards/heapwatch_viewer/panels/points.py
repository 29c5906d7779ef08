"""The points of a time series panel as ECharts needs them: gaps, stacks on common moments."""

from collections.abc import Sequence

from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

Point = tuple[float, float | None]


def with_gaps(series: Series, spans: bool) -> list[Point]:
    """The points, with a break where Prometheus had nothing to say for more than a step."""
    broken: list[Point] = []
    for moment, value in series.points:
        if broken and not spans and moment - broken[-1][0] > 1.5 * series.step:
            broken.append((broken[-1][0] + series.step, None))
        broken.append((moment, value if value == value else None))
    return broken


def filled(series: Series, window: Window, value: float) -> list[Point]:
    """The points with `value` at every step of the window that has none: Grafana does so with some texts."""
    known = {round((moment - window.start) / series.step): point for moment, point in series.points}
    count = int((window.end - window.start) / series.step) + 1
    steps = [known.get(index, value) for index in range(count)]
    return [
        (window.start + index * series.step, point if point == point else value)
        for index, point in enumerate(steps)
    ]


def on_common_moments(members: Sequence[list[Point]]) -> list[list[Point]]:
    """The members of a stack with the same moments each: ECharts stacks the nth on the nth."""
    moments = sorted({moment for points in members for moment, _ in points})
    known = [dict(points) for points in members]
    return [[(moment, values.get(moment)) for moment in moments] for values in known]
