"""Panels and rows on the page: titles, and bodies that show data or what went wrong."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.echart import EChart

from heapwatch_viewer.model import Panel, Row
from heapwatch_viewer.panels import RENDERERS, Answers, Chart, Html
from heapwatch_viewer.panels.base import Mark, nothing
from heapwatch_viewer.prometheus import Prometheus, QueryError
from heapwatch_viewer.queries import Selections, ask
from heapwatch_viewer.timerange import Window

log = logging.getLogger("heapwatch.viewer")
POINTS_PER_COLUMN = 25
TALL = 4  # grid cells; more is a panel that a phone shows over its whole width
_ECHARTS = EChart.__module__  # importing it is what puts `nicegui-echart` into the page's import map

Link = Callable[[str, dict[str, str]], str]
"""Completes an address in a panel with the values of a table row."""
Zoom = Callable[[int, int], None]
"""Is called with (from, to) in milliseconds when the user drags over a chart."""
Content = TypeVar("Content", bound=ui.element)


def explained(problem: Exception) -> str:
    """An error for the person who looks at the page; one that nobody expects is logged too."""
    if isinstance(problem, (QueryError, ValueError)):
        return str(problem)
    log.error("an error of the viewer", exc_info=problem)
    return f"the viewer cannot show this: {problem!r}"


class ChartElement(Element, component="chart.js", esm={"heapwatch-browser": "browser"}):
    """Shows a `Chart` with ECharts as NiceGUI bundles it, with a shared crosshair and zoom by dragging."""

    def __init__(self, on_zoom: Zoom) -> None:
        super().__init__()
        self._props["chart"] = None
        self.on("zoom", lambda event: on_zoom(int(event.args["from"]), int(event.args["to"])))

    def show(self, chart: Chart) -> None:
        """Replace what is drawn."""
        self._props["chart"] = {"options": chart.options, "unit": chart.unit, "legend": chart.legend}
        self.update()


class PanelView:
    """Shows one panel and refreshes it.

    Args:
        top: grid row at which the panel's row starts.

    Attributes:
        in_sight: its row is open.

    """

    def __init__(self, panel: Panel, top: int, link: Link, zoom: Zoom) -> None:
        self.panel = panel
        self.in_sight = True
        self._link = link
        self._zoom = zoom
        self._content: ui.element | None = None
        column, row, width, height = panel.grid
        place = f"--column: {column + 1}; --width: {width}; --row: {row - top + 1}; --height: {height}"
        with (
            ui.element("section")
            .classes(f"panel {panel.kind}{' tall' if height > TALL else ''}")
            .style(place)
            .props(f'data-panel="{panel.id}"')
        ):
            with ui.element("div").classes("panel-title"):
                ui.label(panel.title)
                if panel.description:
                    with ui.icon("info_outline", size="15px").classes("muted"):
                        ui.tooltip(panel.description).classes("text-body2").style(
                            "max-width: 420px; white-space: pre-line"
                        )
            self._error = ui.label().classes("panel-error")
            self._error.set_visibility(False)
            self._body = ui.element("div").classes("panel-body")

    @property
    def points(self) -> int:
        """How many points fit across the panel."""
        return max(100, self.panel.grid[2] * POINTS_PER_COLUMN)

    async def refresh(
        self, prometheus: Prometheus, selections: Selections, window: Window, marks: list[Mark]
    ) -> None:
        """Query the panel's data and show them; an error is shown in this panel only."""
        try:
            series = await ask(self.panel, prometheus, selections, window)
            mine = [mark for mark in marks if not mark.panels or self.panel.id in mark.panels]
            self._show(RENDERERS[self.panel.kind](Answers(self.panel, series, window, self._link, mine)))
        except Exception as problem:  # whatever it is: a panel is never blank
            self._error.set_text(explained(problem))
            self._error.set_visibility(True)
        else:
            self._error.set_visibility(False)
        self._body.set_visibility(not self._error.visible)  # what it shows may not be so any more

    def _show(self, shown: Chart | Html) -> None:
        if isinstance(shown, Chart) and not any(series["data"] for series in shown.options["series"]):
            shown = Html(nothing(self.panel))
        if isinstance(shown, Chart):
            self._content_of(ChartElement, lambda: ChartElement(self._zoom)).show(shown)
        else:
            self._content_of(ui.html, lambda: ui.html("", sanitize=False)).set_content(shown.body)

    def _content_of(self, kind: type[Content], make: Callable[[], Content]) -> Content:
        """The element in the panel's body, replaced if it has another type."""
        if not isinstance(self._content, kind):
            self._body.clear()
            with self._body:
                self._content = make()
        assert isinstance(self._content, kind)
        return self._content


class RowView:
    """Shows a row, which a click on its heading opens and closes.

    Args:
        fill: asks for the data of these panels.

    """

    def __init__(self, row: Row, link: Link, zoom: Zoom, fill: Callable[[Sequence[PanelView]], None]) -> None:
        self._fill = fill
        self._title = ui.element("div").classes("row-title").props("role=button tabindex=0")
        self._title.set_visibility(bool(row.title))
        with self._title:
            self._arrow = ui.icon("expand_more")
            ui.label(row.title)
        self._title.on("click", self._toggle).on("keydown.enter", self._toggle)
        self._grid = ui.element("div").classes("grid")
        top = min(panel.grid[1] for panel in row.panels)
        with self._grid:
            self.views = [PanelView(panel, top, link, zoom) for panel in row.panels]
        self._show(not row.collapsed)

    def _show(self, visible: bool) -> None:
        self._grid.set_visibility(visible)
        self._title.props(f"aria-expanded={str(visible).lower()}")
        self._arrow.name = "expand_more" if visible else "chevron_right"
        for view in self.views:
            view.in_sight = visible

    def _toggle(self) -> None:
        self._show(not self._grid.visible)
        if self._grid.visible:
            self._fill(self.views)
