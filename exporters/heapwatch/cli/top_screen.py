"""The screen of `heapwatch top`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from heapwatch.cli.top_source import COLUMNS, Path, Snapshot, Source, cells, memory_text
from heapwatch.judge.verdict import SERIOUS
from heapwatch.text.terminal import literal

ORDERS = ("growth", "bytes", "items", "path")
_NARROW = 100  # columns; on narrower screens type and line are cut to _CUT
_CUT, _WHOLE = (12, 14), (20, 24)
_NUMBERS = 32  # columns that items, bytes and growth take


class TopScreen(App[None]):
    """The screen: the verdict and memory on top, a table of paths below.

    A thread reads the source, of one trainer, every `interval` seconds. `snapshot` is the last one it read.
    """

    CSS = """
    #verdict { height: auto; max-height: 5; padding: 0 1; }
    #memory { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    #state { height: 1; padding: 0 1; color: $text-muted; }
    DataTable { height: 1fr; padding: 0 1; }
    Details { align: center middle; }
    #details { width: 90%; height: auto; max-height: 80%; padding: 1 2; }
    #details { background: $surface; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "sort", "sort"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: Source, interval: float) -> None:
        super().__init__()
        self.snapshot: Snapshot | None = None
        self._source = source
        self._interval = interval
        self._order = ORDERS[0]
        self._rows: list[Path] = []

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        yield Static(id="verdict")
        yield Static(id="memory")
        yield Static(id="state")
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Footer()

    def on_mount(self) -> None:
        """Start reading the source."""
        self._table.add_columns(*(f"{name} " for name in COLUMNS))
        self._table.focus()
        self._start_reading()
        self.set_interval(self._interval, self._start_reading)

    def _start_reading(self) -> None:
        self.run_worker(self._read, thread=True, group="read", exclusive=True)

    def _read(self) -> None:
        (snapshot,) = self._source.read()
        if self.is_running:
            self.call_from_thread(self._show, snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._draw()

    def on_resize(self) -> None:
        """Draw in the new width."""
        self._draw()

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        """Show all details of a path."""
        if selected.cursor_row < len(self._rows):
            self.push_screen(Details(self._rows[selected.cursor_row]))

    def action_sort(self) -> None:
        """Sort by the next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._draw()

    @property
    def _table(self) -> DataTable[Any]:
        return self.query_one(DataTable)

    def _draw(self) -> None:
        if self.snapshot is None:
            return
        snapshot, table = self.snapshot, self._table
        style = "bold red" if snapshot.verdict in SERIOUS or snapshot.problem else "bold"
        line = snapshot.problem or snapshot.headline
        self.query_one("#verdict", Static).update(literal(line, style))
        memory = f"memory {memory_text(snapshot)}" if snapshot.memory else ""
        self.query_one("#memory", Static).update(literal(memory))
        state = f"{time.strftime('%H:%M:%S')}  {snapshot.trainer}, sorted by {self._order}"
        self.query_one("#state", Static).update(literal(state))
        widths = _CUT if self.size.width < _NARROW else _WHOLE
        lengths = (max(20, self.size.width - _NUMBERS - sum(widths)), *widths)
        self._rows, cursor_row = _sorted(snapshot.paths, self._order), table.cursor_row
        table.clear()
        for path in self._rows:
            style = "red" if path.is_leak else ""
            table.add_row(*(literal(f"{cell} ", style) for cell in cells(path, lengths)))
        table.move_cursor(row=min(cursor_row, len(self._rows) - 1))


class Details(ModalScreen[None]):
    """All details of a path."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "back")]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        path = self._path
        text = literal(path.path, "bold")
        for line in [path.type, *path.details]:
            text.append("\n\n").append_text(literal(line))
        with VerticalScroll(id="details"):
            yield Static(text)


def _sorted(paths: Iterable[Path], order: str) -> list[Path]:
    if order == "path":
        return sorted(paths, key=lambda one: one.path)
    key = {"growth": "bytes_per_minute", "bytes": "bytes", "items": "items"}[order]
    return sorted(paths, key=lambda one: -(getattr(one, key) or 0.0))
