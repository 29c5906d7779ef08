"""One open dashboard: its state, its toolbar, its rows, and their refreshing."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timezone, tzinfo

from nicegui import background_tasks, ui

from heapwatch_viewer import queries, units
from heapwatch_viewer.links import board_address, complete
from heapwatch_viewer.model import Dashboard
from heapwatch_viewer.panel import PanelView
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Prometheus, QueryError
from heapwatch_viewer.row import RowView
from heapwatch_viewer.state import State
from heapwatch_viewer.timerange import TimeRange, Window
from heapwatch_viewer.toolbar import Toolbar
from heapwatch_viewer.unwell import unwell
from heapwatch_viewer.variables import Selection, choices, settle

ABOUT = (
    "This is Heapwatch's built-in viewer of its Grafana dashboards. Install Grafana "
    "(https://grafana.com/grafana/download) and run `make up` again to have these pages there."
)


class DashboardPage:
    """Builds the page of one dashboard for one browser, and keeps it fresh.

    Args:
        boards: every dashboard, by uid, for the links between them.
        problem: an error in the address, shown on the page.

    Attributes:
        zone: the browser's time zone.
        watched: the page is not in a hidden tab; a hidden one is not refreshed.

    """

    def __init__(
        self,
        board: Dashboard,
        boards: Mapping[str, Dashboard],
        prometheus: Prometheus,
        state: State,
        problem: str = "",
    ) -> None:
        self.board = board
        self.boards = boards
        self.state = state
        self._prometheus = prometheus
        self._problem = problem
        self._views: list[PanelView] = []
        self._rows: list[RowView] = []
        self._marks: list[Mark] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._with_variables = {
            link["url"].rpartition("/")[2] for link in board.links if link.get("includeVars")
        }
        self.zone: tzinfo = timezone.utc
        self.watched = True

    def build(self) -> None:
        """Lay out everything; data come with the first `reload`."""
        self._dark = ui.dark_mode(self.state.theme != "light")
        with ui.element("nav").classes("boards"):
            self._links = {uid: ui.link(short_title(board.title), "") for uid, board in self.boards.items()}
        self._links[self.board.uid].classes("here")
        self._toolbar = Toolbar(self)
        self._note = ui.label(self._problem).classes("note error")
        self._keeper = ui.label().classes("note error")
        _show(self._keeper, unwell())
        self._rows = [RowView(row, self.link, self.zoom, self._fill_opened) for row in self.board.rows]
        self._views = [view for row in self._rows for view in row.views]
        ui.label(ABOUT).classes("note")

    def show_in(self, zone: tzinfo) -> None:
        """Write times in the browser's time zone from now on."""
        self.zone = zone
        self._toolbar.update()

    def reload(self) -> None:
        """Ask for everything in sight now; what is still being asked is given up."""
        self.stop()
        self._begin(self._ask())

    def refresh(self) -> None:
        """Ask again, unless answers are still awaited or nobody looks: questions must not pile up."""
        if self.watched and not self._asking:
            self._begin(self._ask())

    def watch(self, watched: bool) -> None:
        """The tab was hidden, or is shown again."""
        if watched and not self.watched and self.state.refresh:
            self.reload()
        self.watched = watched

    def stop(self) -> None:
        """Give up what is being asked; Prometheus then stops working on it."""
        for task in self._asking:
            task.cancel()

    def address(self, uid: str) -> str:
        """The address of dashboard `uid` with this page's state."""
        state = self.state
        span = state.span if state.chosen_range else None
        selections = state.selections if uid == self.board.uid or uid in self._with_variables else {}
        return board_address(uid, span, selections, state.refresh, state.theme)

    def link(self, address: str, values: dict[str, str]) -> str:
        """An address found in a panel, completed with `values` and this page's state."""
        return complete(address, values, self.state.span, self.state.selections)

    @property
    def span(self) -> TimeRange:
        """The time range."""
        return self.state.span

    @property
    def refresh_interval(self) -> str:
        """How often it refreshes, as in the address."""
        return self.state.refresh

    def choose_range(self, span: TimeRange) -> None:
        """Show another time range."""
        self.state.span = span
        self.state.chosen_range = True
        self._change()

    def zoom(self, start: int, end: int) -> None:
        """Show only `start` to `end`, milliseconds since 1970, at least a minute."""
        self.choose_range(TimeRange(str(start), str(max(end, start + 60_000))))

    def choose(self, variable: str, values: list[str]) -> None:
        """Choose these values of a variable."""
        self.state.wanted[variable] = values
        self.state.selections[variable] = Selection(tuple(values))
        self._change()

    def annotate(self, name: str, shown: bool) -> None:
        """Switch an annotation on or off."""
        (self.state.annotations.add if shown else self.state.annotations.discard)(name)
        self.reload()

    def refresh_every(self, interval: str) -> None:
        """Refresh at another interval."""
        self.state.refresh = interval
        ui.navigate.history.replace(self.address(self.board.uid))

    def _change(self) -> None:
        """The state has changed: show it in the address and ask again."""
        self._problem = ""
        ui.navigate.history.replace(self.address(self.board.uid))
        self._toolbar.update()
        self.reload()

    def toggle_theme(self) -> None:
        """Dark to light or back; charts repaint themselves."""
        self._dark.toggle()
        self.state.theme = "dark" if self._dark.value else "light"
        ui.navigate.history.replace(self.address(self.board.uid))
        ui.run_javascript("setTimeout(() => window.dispatchEvent(new Event('heapwatch-theme')), 50)")

    def _fill_opened(self, views: Sequence[PanelView]) -> None:
        self._begin(self._fill(views, time.time()))

    def _begin(self, asking: Coroutine[None, None, None]) -> None:
        task = background_tasks.create(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self) -> None:
        """Ask for variables, annotations and panels, and say what fails where it fails."""
        _show(self._keeper, unwell())
        now = time.time()
        try:
            window = Window.of(self.state.span, 300, now)
            await self._settle_variables(window)
            shown = [item for item in self.board.annotations if item.name in self.state.annotations]
            self._marks = await queries.marks(shown, self._prometheus, self.state.selections, window)
        except (QueryError, ValueError) as problem:
            _show(self._note, str(problem))
        else:
            _show(self._note, self._problem)
        self._update_links()
        await self._fill([view for view in self._views if view.in_sight], now)
        for row in self._rows:
            row.fold_if_empty()

    async def _fill(self, views: Sequence[PanelView], now: float) -> None:
        units.zone.set(self.zone)
        windows = [Window.of(self.state.span, view.points, now) for view in views]
        await asyncio.gather(
            *(
                view.refresh(self._prometheus, self.state.selections, window, self._marks)
                for view, window in zip(views, windows, strict=True)
            )
        )

    async def _settle_variables(self, window: Window) -> None:
        selections: dict[str, Selection] = {}
        for variable in self.board.variables:
            if variable.kind == "datasource":
                continue
            available = await choices(variable, selections, self._prometheus, window)
            selections[variable.name] = settle(variable, self.state.wanted.get(variable.name, ()), available)
            self._toolbar.offer(variable, available, selections[variable.name])
        self.state.selections = selections

    def _update_links(self) -> None:
        for uid, link in self._links.items():
            address = self.address(uid)
            if link.props["href"] != address:
                link.props["href"] = address
                link.update()


def short_title(title: str) -> str:
    """A dashboard's title without the name of the project, which all of them have."""
    return title.rpartition(" / ")[2]


def _show(note: ui.label, text: str) -> None:
    note.set_text(text)
    note.set_visibility(bool(text))
