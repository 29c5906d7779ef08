"""The chart element: Apache ECharts as NiceGUI bundles it, with a shared crosshair and zoom by dragging."""

from collections.abc import Callable

from nicegui.element import Element
from nicegui.elements.echart import EChart

from heapwatch_viewer.panels.base import Chart

_ECHARTS = EChart.__module__  # importing it is what puts `nicegui-echart` into the page's import map


class ChartElement(Element, component="chart.js", esm={"heapwatch-browser": "browser"}):
    """Shows a `Chart`; `on_zoom` is called with (from, to) in milliseconds when the user drags over it."""

    def __init__(self, on_zoom: Callable[[int, int], None]) -> None:
        super().__init__()
        self._props["chart"] = None
        self.on("zoom", lambda event: on_zoom(int(event.args["from"]), int(event.args["to"])))

    def show(self, chart: Chart) -> None:
        """Replace what is drawn."""
        self._props["chart"] = {
            "options": chart.options,
            "units": chart.units,
            "legend": chart.legend,
            "placement": chart.placement,
        }
        self.update()
