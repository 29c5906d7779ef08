"""The screens of `heapwatch top`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from heapwatch.cli.top_machine import COLUMNS as MACHINE_COLUMNS
from heapwatch.cli.top_machine import Row
from heapwatch.cli.top_source import COLUMNS, Path, Snapshot, Source, cells, memory_text
from heapwatch.judge.verdict import SERIOUS
from heapwatch.text.terminal import literal

Result = TypeVar("Result")

ORDERS = ("growth", "bytes", "items", "path")
_NARROW = 100  # columns; a screen with fewer is narrow
_NARROW_WIDTHS, _WIDE_WIDTHS = (12, 14), (20, 24)  # largest widths of type and line
_NUMBERS = 32  # columns that items, bytes and growth take


class _LiveScreen(App[Result]):
    """Lines above a table; a thread calls `read` every `interval` seconds, and `show` draws the result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit", "quit")]
    ENABLE_COMMAND_PALETTE = False
    lines: tuple[str, ...] = ("state",)
    columns: tuple[str, ...] = ()

    def __init__(self, read: Callable[[], Any], interval: float) -> None:
        super().__init__()
        self._read = read
        self._interval = interval

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        for name in self.lines:
            yield Static(id=name)
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Footer()

    def on_mount(self) -> None:
        """Start reading."""
        self._table.add_columns(*(f"{name} " for name in self.columns))
        self._table.focus()
        self._start_reading()
        self.set_interval(self._interval, self._start_reading)

    def show(self, result: Any) -> None:
        """Draw what was read."""
        raise NotImplementedError

    def fill(self, rows: Iterable[tuple[Iterable[str], bool]]) -> None:
        """Replace the rows of the table; each has its cells, and whether it is red."""
        table, cursor_row = self._table, self._table.cursor_row
        table.clear()
        for cells_of_row, is_red in rows:
            table.add_row(*(literal(f"{cell} ", "red" if is_red else "") for cell in cells_of_row))
        table.move_cursor(row=min(cursor_row, table.row_count - 1))

    def write(self, line: str, text: str, style: str = "") -> None:
        """Show a text in one of the lines."""
        self.query_one(f"#{line}", Static).update(literal(text, style))

    def _start_reading(self) -> None:
        self.run_worker(self._read_and_show, thread=True, group="read", exclusive=True)

    def _read_and_show(self) -> None:
        result = self._read()
        if self.is_running:
            self.call_from_thread(self.show, result)

    @property
    def _table(self) -> DataTable[Any]:
        return self.query_one(DataTable)


class MachineScreen(_LiveScreen[Row]):
    """The machine's groups of processes. The result is the group that the user chooses; None after `q`."""

    CSS = "#state { height: 1; padding: 0 1; } DataTable { height: 1fr; padding: 0 1; }"
    columns = MACHINE_COLUMNS

    def show(self, result: list[Row]) -> None:
        """Draw the groups."""
        self._rows = result
        self.fill((row.cells(), row.verdict in SERIOUS) for row in result)
        self.write("state", f"{time.strftime('%H:%M:%S')}  {len(result)} groups; Enter opens one")

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        """Exit with the chosen group, if one of its processes can be shown."""
        for row in self._rows[selected.cursor_row :][:1]:  # there may be fewer by now
            if row.url or row.pid is not None:
                self.exit(row)


class TopScreen(_LiveScreen[None]):
    """One trainer: the verdict and memory on top, a table of paths below.

    `snapshot` is the last one that was read.
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
    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "sort", "sort")]
    lines = ("verdict", "memory", "state")
    columns = COLUMNS

    def __init__(self, source: Source, interval: float) -> None:
        super().__init__(source.read, interval)
        self.snapshot: Snapshot | None = None
        self._order = ORDERS[0]
        self._paths: list[Path] = []

    def show(self, result: list[Snapshot]) -> None:
        """Draw the trainer."""
        (self.snapshot,) = result
        self._draw()

    def on_resize(self) -> None:
        """Draw in the new width."""
        self._draw()

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        """Show all details of a path."""
        if selected.cursor_row < len(self._paths):
            self.push_screen(Details(self._paths[selected.cursor_row]))

    def action_sort(self) -> None:
        """Sort by the next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._draw()

    def _draw(self) -> None:
        if self.snapshot is None:
            return
        snapshot = self.snapshot
        style = "bold red" if snapshot.verdict in SERIOUS or snapshot.problem else "bold"
        self.write("verdict", snapshot.problem or snapshot.headline, style)
        self.write("memory", f"memory {memory_text(snapshot)}" if snapshot.memory else "")
        self.write("state", f"{time.strftime('%H:%M:%S')}  {snapshot.trainer}, sorted by {self._order}")
        widths = _NARROW_WIDTHS if self.size.width < _NARROW else _WIDE_WIDTHS
        lengths = (max(20, self.size.width - _NUMBERS - sum(widths)), *widths)
        self._paths = _sorted(snapshot.paths, self._order)
        self.fill((cells(path, lengths), path.is_leak) for path in self._paths)


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
