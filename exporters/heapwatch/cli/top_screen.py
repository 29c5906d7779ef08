"""The screen of `heapwatch top`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

from heapwatch.cli.top_source import COLUMNS, Path, Snapshot, Source, cells, memory_text
from heapwatch.judge.verdict import SERIOUS, WORDS
from heapwatch.text.numbers import size
from heapwatch.text.terminal import literal, plain

ORDERS = ("growth", "bytes", "items", "path")
_NARROW = 100  # columns; on narrower screens type and line are cut to _CUT
_CUT, _WHOLE = (12, 14), (20, 24)
_NUMBERS = 32  # columns that items, bytes and growth take


class TopScreen(App[None]):
    """The screen: verdicts and memory on top, a table of paths below.

    A thread reads the source every `interval` seconds. `snapshots` are the last ones it read.
    """

    CSS = """
    #verdicts { height: auto; max-height: 5; padding: 0 1; }
    #memory { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    #state { height: 1; padding: 0 1; color: $text-muted; }
    DataTable { height: 1fr; padding: 0 1; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    Details { align: center middle; }
    #details { width: 90%; height: auto; max-height: 80%; padding: 1 2; }
    #details { background: $surface; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("s", "sort", "sort"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "unfilter", "all", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: Source, interval: float) -> None:
        super().__init__()
        self.snapshots: list[Snapshot] = []
        self._source = source
        self._interval = interval
        self._order = ORDERS[0]
        self._filter = ""
        self._rows: list[Path] = []

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        yield Static(id="verdicts")
        yield Static(id="memory")
        yield Static(id="state")
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Input(placeholder="part of a path, a type or a line", id="filter", compact=True)
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
        snapshots = self._source.read()
        if self.is_running:
            self.call_from_thread(self._show, snapshots)

    def _show(self, snapshots: list[Snapshot]) -> None:
        self.snapshots = snapshots
        self._draw()

    def on_resize(self) -> None:
        """Draw in the new width."""
        if self.snapshots:
            self._draw()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Show the paths that contain the text."""
        self._filter = changed.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Return to the table; the filter stays."""
        self._table.focus()

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        """Show all details of a path."""
        if selected.cursor_row < len(self._rows):
            self.push_screen(Details(self._rows[selected.cursor_row]))

    def action_sort(self) -> None:
        """Sort by the next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._draw()

    def action_filter(self) -> None:
        """Ask for a text."""
        self._input.display = True
        self.call_after_refresh(self._input.focus)

    def action_unfilter(self) -> None:
        """Show all paths again."""
        self._input.value = ""
        self._input.display = False
        self._table.focus()

    @property
    def _table(self) -> DataTable[Any]:
        return self.query_one(DataTable)

    @property
    def _input(self) -> Input:
        return self.query_one("#filter", Input)

    def _draw(self) -> None:
        snapshots = sorted(self.snapshots, key=_severity, reverse=True)
        has_several = len(snapshots) > 1
        verdicts = literal("")
        for one in snapshots:
            style = "bold red" if one.verdict in SERIOUS or one.problem else "bold"
            line = one.problem or one.headline
            if has_several:
                time_left = f" ({one.time_left} left)" if one.time_left else ""
                line = f"{one.trainer}{time_left} {line}"
            longest = self.size.width - 2 if has_several else 0
            verdicts.append_text(literal(plain(line, longest), style)).append("\n")
        verdicts.rstrip()
        self.query_one("#verdicts", Static).update(verdicts)
        self.query_one("#memory", Static).update(literal(_memory(snapshots)))
        count = f"{len(snapshots)} trainer{'s' if has_several else ''}" if snapshots else "reading"
        state = f"{time.strftime('%H:%M:%S')}  {count}, sorted by {self._order}"
        self.query_one("#state", Static).update(literal(state))
        self._fill(
            _sorted((path for one in snapshots for path in one.paths if self._matches(path)), self._order)
        )

    def _fill(self, rows: list[Path]) -> None:
        table, cursor_row = self._table, self._table.cursor_row
        widths = _CUT if self.size.width < _NARROW else _WHOLE
        lengths = (max(20, self.size.width - _NUMBERS - sum(widths)), *widths)
        has_several = len({path.trainer for path in rows}) > 1
        self._rows = rows
        table.clear()
        for path in rows:
            style = "red" if path.is_leak else ""
            shown = cells(path, lengths, of_several=has_several)
            table.add_row(*(literal(f"{cell} ", style) for cell in shown))
        table.move_cursor(row=min(cursor_row, len(rows) - 1))

    def _matches(self, path: Path) -> bool:
        text = f"{path.trainer} {path.path} {path.type} {path.line}".lower()
        return self._filter.lower() in text


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
        for line in [f"{path.type}, in {path.trainer}", *path.details]:
            text.append("\n\n").append_text(literal(line))
        with VerticalScroll(id="details"):
            yield Static(text)


def _severity(snapshot: Snapshot) -> int:
    words: list[str] = list(WORDS)
    return words.index(snapshot.verdict) if snapshot.verdict in words else -1


def _memory(snapshots: list[Snapshot]) -> str:
    if len(snapshots) == 1:
        return f"memory {memory_text(snapshots[0])}" if snapshots[0].memory else ""
    total = sum(one.memory.get("resident", 0.0) + one.memory.get("in workers", 0.0) for one in snapshots)
    return f"memory of all {size(total)}" if total else ""


def _sorted(paths: Iterable[Path], order: str) -> list[Path]:
    if order == "path":
        return sorted(paths, key=lambda one: one.path)
    key = {"growth": "bytes_per_minute", "bytes": "bytes", "items": "items"}[order]
    return sorted(paths, key=lambda one: -(getattr(one, key) or 0.0))
