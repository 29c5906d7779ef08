"""One open dashboard: its state, its toolbar, its rows, and their refresh."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from html import escape

from nicegui import background_tasks, ui

from heapwatch_viewer.address import State, board_address, complete
from heapwatch_viewer.model import Dashboard, Variable
from heapwatch_viewer.panel import PanelView, RowView, explained
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Prometheus, QueryError, UnreachableError
from heapwatch_viewer.queries import ALL, choices, chosen_of, find_marks
from heapwatch_viewer.timerange import PRESETS, TimeRange, Window, seconds_of

CHECK_SECONDS = 5
ADVICE = (
    "Nothing is known of now; charts show what was known before. `heapwatch status` says what is down, and "
    "why; `heapwatch up`, in a clone `make up`, starts it. This page then goes on by itself."
)
ABOUT = (
    "This is Heapwatch's built-in viewer of its Grafana dashboards. Install Grafana "
    "(https://grafana.com/grafana/download) and run `make up` again to have these pages there."
)


class DashboardPage:
    """Builds the page of one dashboard for one browser, and refreshes it.

    Args:
        boards: every dashboard, by uid, for the links between them.
        problem: an error in the address, shown on the page.

    Attributes:
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
        self._unknown: list[str] = []
        self._views: list[PanelView] = []
        self._marks: list[Mark] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._with_variables = {
            link["url"].rpartition("/")[2] for link in board.links if link.get("includeVars")
        }
        self.watched = True

    def build(self) -> None:
        """Lay out everything; data come with the first `reload`."""
        ui.dark_mode(self.state.theme != "light")
        with ui.element("nav").classes("boards"):
            self._links = {uid: ui.link(short_title(board.title), "") for uid, board in self.boards.items()}
        self._links[self.board.uid].classes("here")
        self._toolbar = Toolbar(self)
        if seconds := seconds_of(self.state.refresh):
            ui.timer(seconds, self.refresh, immediate=False)
            ui.timer(CHECK_SECONDS, self.check, immediate=False)
        self._note = ui.label(self._problem).classes("note error")
        self._outage = ui.label().classes("outage")
        _show(self._outage, "")
        with ui.element("div") as self._rows:
            rows = [RowView(row, self.link, self.zoom, self._fill_opened) for row in self.board.rows]
        self._views = [view for row in rows for view in row.views]
        ui.label(ABOUT).classes("note")

    def reload(self) -> None:
        """Query everything that is visible now, and cancel running queries."""
        self.stop()
        self._begin(self._ask())

    def refresh(self) -> None:
        """Query again, unless queries are pending or the page is hidden, so that queries do not pile up."""
        if self.watched and not self._asking:
            self._begin(self._ask())

    async def check(self) -> None:
        """Say soon that Prometheus stopped, and go on when it answers again."""
        if not self.watched:
            return
        try:
            await self._prometheus.instant("vector(1)", time.time())
        except QueryError as problem:
            self._show_outage(str(problem))
        else:
            if self._outage.visible:
                self.reload()

    def watch(self, watched: bool) -> None:
        """Note that the tab was hidden, or is shown again."""
        if watched and not self.watched and self.state.refresh:
            self.reload()
        self.watched = watched

    def stop(self) -> None:
        """Cancel running queries, which also ends them in Prometheus."""
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
        self.state.selections[variable] = tuple(values)
        self._change()

    def _change(self) -> None:
        """After a change of state: show it in the address and query again."""
        self._problem = ""
        self._write_address()
        self._toolbar.update()
        self.reload()

    def _write_address(self) -> None:
        ui.navigate.history.replace(self.address(self.board.uid))

    def _fill_opened(self, views: Sequence[PanelView]) -> None:
        self._begin(self._fill(views, time.time()))

    def _begin(self, asking: Coroutine[None, None, None]) -> None:
        task = background_tasks.create(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self) -> None:
        """Query variables, annotations and panels, and show each error at its place."""
        now = time.time()
        try:
            window = Window.of(self.state.span, 300, now)
            await self._select(window)
            self._marks = await find_marks(
                self.board.annotations, self._prometheus, self.state.selections, window
            )
        except UnreachableError as problem:
            self._show_outage(str(problem))
            return
        except Exception as problem:  # the panels are asked all the same
            _show(self._note, explained(problem))
        else:
            _show(self._note, " ".join(filter(None, (self._problem, *self._unknown))))
        self._show_outage("")
        self._update_links()
        await self._fill([view for view in self._views if view.in_sight], now)

    async def _fill(self, views: Sequence[PanelView], now: float) -> None:
        state = self.state
        await asyncio.gather(
            *(
                view.refresh(
                    self._prometheus, state.selections, Window.of(state.span, view.points, now), self._marks
                )
                for view in views
            )
        )

    async def _select(self, window: Window) -> None:
        """Choose the values of every variable that are wanted, and note those that there are not."""
        selections: dict[str, tuple[str, ...]] = {}
        unknown = []
        for variable in self.board.variables:
            available = await choices(variable, selections, self._prometheus, window)
            chosen = chosen_of(variable, self.state.wanted.get(variable.name, ()), available)
            selections[variable.name] = chosen
            self.state.wanted[variable.name] = list(chosen)  # it stays, whatever comes first later
            unknown += [
                f"There is no {variable.label.lower()} {value} in this time range."
                for value in chosen
                if value not in (ALL, *available)
            ]
            self._toolbar.offer(variable, available, chosen)
        self._unknown = unknown
        if self.state.selections != selections:
            self.state.selections = selections
            with self._note:
                self._write_address()

    def _show_outage(self, problem: str) -> None:
        """Say that nothing is known, and hide what the page says of now; without a problem take that back."""
        _show(self._outage, problem and f"{problem} {ADVICE}")
        self._rows.classes(add="unknown" if problem else "", remove="" if problem else "unknown")

    def _update_links(self) -> None:
        for uid, link in self._links.items():
            address = self.address(uid)
            if link.props["href"] != address:
                link.props["href"] = address
                link.update()


class Toolbar:
    """The top of a page: lets the user change what it shows."""

    def __init__(self, page: DashboardPage) -> None:
        self._page = page
        self._selects: dict[str, ui.select] = {}
        with ui.element("header").classes("bar-top"):
            ui.html(f"<h1>{escape(page.board.title)}</h1>", sanitize=False)
            self._variables = ui.row().classes("items-center gap-2")
            ui.element("div").classes("spring")
            self._build_range()
            ui.button(icon="refresh", on_click=page.reload).props("flat dense").tooltip("Refresh now")

    def update(self) -> None:
        """Show a time range that was changed elsewhere."""
        self._range.set_text(self._page.state.span.label())

    def offer(self, variable: Variable, available: Mapping[str, str], chosen: tuple[str, ...]) -> None:
        """Show the choices of a variable and what is chosen."""
        if variable.hidden:
            return
        options = {**({ALL: "All"} if variable.several else {}), **available}
        for missing in chosen:
            options.setdefault(missing, "none" if missing == ALL else missing)
        value: list[str] | str = list(chosen) if variable.several else chosen[0]
        known = self._selects.get(variable.name)
        if known is None:
            with self._variables:
                known = ui.select(options, label=variable.label, value=value, multiple=variable.several)
                known.props("dense outlined options-dense")
                known.on("update:model-value", lambda _, name=variable.name: self._choose(name))
            self._selects[variable.name] = known
        elif known.options != options or known.value != value:
            known.set_options(options, value=value)

    def _choose(self, name: str) -> None:
        value = self._selects[name].value
        values = list(value) if isinstance(value, list) else [value]
        if ALL in values and len(values) > 1:  # a value chosen after All narrows; All chosen last widens
            values = [ALL] if values[-1] == ALL else [value for value in values if value != ALL]
        self._page.choose(name, values)

    def _build_range(self) -> None:
        page = self._page
        with ui.button(color=None).props("outline dense no-caps icon=schedule").classes("q-px-sm"):
            self._range = ui.label(page.state.span.label()).classes("q-ml-xs")
            with ui.menu():
                for begin, label in PRESETS.items():
                    ui.menu_item(
                        f"Last {label}", lambda begin=begin: page.choose_range(TimeRange(begin))
                    ).props("dense")


def short_title(title: str) -> str:
    """A dashboard's title without the name of the project, which all of them have."""
    return title.rpartition(" / ")[2]


def _show(note: ui.label, text: str) -> None:
    note.set_text(text)
    note.set_visibility(bool(text))
