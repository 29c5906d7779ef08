"""One row of a dashboard: heading and panels, and one line in their place while none of them has data."""

from collections.abc import Callable, Sequence

from nicegui import ui

from heapwatch_viewer.model import Row
from heapwatch_viewer.panel import PanelView


class RowView:
    """Shows a row, which a click on its heading opens and closes.

    Args:
        link: completes an address in a panel with the values of a table row.
        zoom: called with (from, to) in milliseconds.
        fill: asks for the data of these panels.

    """

    def __init__(
        self,
        row: Row,
        link: Callable[[str, dict[str, str]], str],
        zoom: Callable[[int, int], None],
        fill: Callable[[Sequence[PanelView]], None],
    ) -> None:
        self._fill = fill
        self._opened_by_hand = False
        self._title = ui.element("div").classes("row-title").props("role=button tabindex=0")
        self._title.set_visibility(bool(row.title))
        with self._title:
            self._arrow = ui.icon("expand_more")
            ui.label(row.title)
        self._title.on("click", self._toggle).on("keydown.enter", self._toggle)
        self._line = ui.html("", sanitize=False).classes("row-empty")
        self._line.set_visibility(False)
        self._grid = ui.element("div").classes("grid")
        top = min(panel.grid[1] for panel in row.panels)
        with self._grid:
            self.views = [PanelView(panel, top, link, zoom) for panel in row.panels]
        self._show(not row.collapsed)

    def fold_if_empty(self) -> None:
        """While no panel has data, say so once instead of in each; a row that somebody opened stays open."""
        if not self.views[0].in_sight or self._opened_by_hand:
            return
        says = [view.says for view in self.views]
        empty = all(says)
        self._unfold(not empty)
        self._line.set_visibility(empty)
        if empty:
            # A line to copy says more than that there is nothing.
            self._line.set_content(next((text for text in says if "<code>" in text), says[0]))

    def _show(self, visible: bool) -> None:
        self._unfold(visible)
        self._line.set_visibility(False)
        self._arrow.name = "expand_more" if visible else "chevron_right"
        for view in self.views:
            view.in_sight = visible

    def _unfold(self, visible: bool) -> None:
        self._grid.set_visibility(visible)
        self._title.props(f"aria-expanded={str(visible).lower()}")

    def _toggle(self) -> None:
        self._show(not self._grid.visible)
        self._opened_by_hand = self._grid.visible
        if self._grid.visible:
            self._fill(self.views)
