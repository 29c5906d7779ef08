"""One panel on the page: title, description, and a body that shows data or what went wrong."""

from collections.abc import Callable
from typing import TypeVar

from nicegui import ui

from heapwatch_viewer import queries
from heapwatch_viewer.chart import ChartElement
from heapwatch_viewer.model import Panel
from heapwatch_viewer.panels import RENDERERS, Answers, Chart, Html
from heapwatch_viewer.panels.base import Mark, nothing
from heapwatch_viewer.prometheus import Prometheus, QueryError
from heapwatch_viewer.timerange import Window
from heapwatch_viewer.variables import Selections, interpolate

POINTS_PER_COLUMN = 25
TALL = 4  # grid cells; more is a panel that a phone shows over its whole width

Content = TypeVar("Content", bound=ui.element)


class PanelView:
    """Shows one panel and refreshes it.

    Args:
        top: grid row at which the panel's row starts.
        link: completes an address in the panel with the values of a table row.
        zoom: called with (from, to) in milliseconds.

    Attributes:
        in_sight: its row is open.
        says: what it says for lack of data, as HTML; empty when it has some.

    """

    def __init__(
        self,
        panel: Panel,
        top: int,
        link: Callable[[str, dict[str, str]], str],
        zoom: Callable[[int, int], None],
    ) -> None:
        self.panel = panel
        self.in_sight = True
        self.says = ""
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
                self._title = ui.label(panel.title)
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
            if self.panel.kind not in RENDERERS:
                raise ValueError(
                    f"the built-in viewer has no {self.panel.kind} panels; Grafana shows this one"
                )
            series = await queries.ask(self.panel, prometheus, selections, window)
            mine = [mark for mark in marks if not mark.panels or self.panel.id in mark.panels]
            shown = RENDERERS[self.panel.kind](Answers(self.panel, series, window, self._link, mine))
        except (QueryError, ValueError) as problem:
            self.says = ""
            self._error.set_text(str(problem))
            self._error.set_visibility(True)
            return
        self._error.set_visibility(False)
        self._title.set_text(interpolate(self.panel.title, selections, window))
        self._show(shown)

    def _show(self, shown: Chart | Html) -> None:
        if isinstance(shown, Chart) and not any(series["data"] for series in shown.options["series"]):
            shown = Html(nothing(self.panel))
        self.says = shown.body if isinstance(shown, Html) and shown.body == nothing(self.panel) else ""
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
