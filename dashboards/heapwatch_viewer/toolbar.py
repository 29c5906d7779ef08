"""The top of a dashboard: title, variables, annotations, time range, refresh, theme."""

import time
from collections.abc import Mapping
from datetime import datetime, tzinfo
from html import escape
from typing import Any, Protocol

from nicegui import ui

from heapwatch_viewer.model import Dashboard, Variable
from heapwatch_viewer.timerange import PRESETS, TimeRange
from heapwatch_viewer.variables import ALL, Selection

REFRESHES = {"": 0, "5s": 5, "10s": 10, "15s": 15, "30s": 30, "1m": 60, "5m": 300, "15m": 900}


class Reader(Protocol):
    """The state of the toolbar; every change goes into the address and repeats the queries."""

    board: Dashboard
    zone: tzinfo

    @property
    def span(self) -> TimeRange:
        """The time range."""

    @property
    def refresh_interval(self) -> str:
        """One of REFRESHES."""

    def choose_range(self, span: TimeRange) -> None:
        """Show another time range."""

    def choose(self, variable: str, values: list[str]) -> None:
        """Choose these values of a variable."""

    def annotate(self, name: str, shown: bool) -> None:
        """Switch an annotation on or off."""

    def refresh_every(self, interval: str) -> None:
        """Refresh at another interval."""

    def refresh(self) -> None:
        """Ask again, unless answers are still awaited."""

    def reload(self) -> None:
        """Ask again now."""

    def toggle_theme(self) -> None:
        """Dark to light or back."""


class Toolbar:
    """Lets the user change what the page shows."""

    def __init__(self, page: Reader) -> None:
        self._page = page
        self._selects: dict[str, Any] = {}
        with ui.element("header").classes("bar-top"):
            ui.html(f"<h1>{escape(page.board.title)}</h1>", sanitize=False)
            self._variables = ui.row().classes("items-center gap-2")
            for annotation in page.board.annotations:
                ui.checkbox(
                    annotation.name,
                    value=annotation.enabled,
                    on_change=lambda event, name=annotation.name: page.annotate(name, event.value),
                ).props("dense")
            ui.element("div").classes("spring")
            self._build_range()
            self._build_refresh()
            ui.button(icon="refresh", on_click=page.reload).props("flat dense").tooltip("Refresh now")
            ui.button(icon="contrast", on_click=page.toggle_theme).props("flat dense").tooltip(
                "Dark or light"
            )

    def update(self) -> None:
        """Show a time range that was changed elsewhere."""
        self._range.set_text(self._page.span.label(self._page.zone))

    def offer(self, variable: Variable, available: Mapping[str, str], selection: Selection) -> None:
        """Show the choices of a variable and what is chosen."""
        if variable.hidden:
            return
        options = {ALL: "All"} if variable.include_all else {}
        options |= available
        value: Any = list(selection.values) if variable.multi else next(iter(selection.values), None)
        known = self._selects.get(variable.name)
        if known is None:
            with self._variables:
                known = ui.select(options, label=variable.label, value=value, multiple=variable.multi)
                known.props("dense outlined options-dense")
                known.on("update:model-value", lambda _, name=variable.name: self._choose(name))
            self._selects[variable.name] = known
        elif known.options != options or known.value != value:
            known.set_options(options, value=value)

    def _choose(self, name: str) -> None:
        chosen = self._selects[name].value
        values = chosen if isinstance(chosen, list) else [chosen]
        if ALL in values and len(values) > 1:  # a value chosen after All narrows; All chosen last widens
            values = [ALL] if values[-1] == ALL else [value for value in values if value != ALL]
        self._page.choose(name, values)

    def _build_refresh(self) -> None:
        chosen = self._page.refresh_interval
        seconds = REFRESHES.get(chosen, 0)
        ui.select(
            {text: text or "off" for text in REFRESHES},
            value=chosen if chosen in REFRESHES else "",
            on_change=lambda event: self._refresh_every(event.value),
        ).props("dense outlined options-dense").style("min-width: 80px").tooltip("Refresh every")
        self._timer = ui.timer(seconds or 60, self._page.refresh, active=bool(seconds), immediate=False)

    def _refresh_every(self, text: str) -> None:
        self._timer.active = bool(REFRESHES[text])
        if REFRESHES[text]:
            self._timer.interval = REFRESHES[text]
        self._page.refresh_every(text)

    def _build_range(self) -> None:
        with ui.button(color=None).props("outline dense no-caps icon=schedule").classes("q-px-sm"):
            self._range = ui.label(self._page.span.label(self._page.zone)).classes("q-ml-xs")
            with ui.menu() as menu, ui.row().classes("q-pa-md no-wrap items-start"):
                with ui.column().classes("gap-1"):
                    where = ui.label().classes("muted")
                    start = ui.input("From").props("dense outlined type=datetime-local step=1")
                    end = ui.input("To").props("dense outlined type=datetime-local step=1")
                    wrong = ui.label().classes("panel-error")

                    def fill() -> None:
                        where.set_text(f"From and to, in {self._page.zone} time")
                        moments = self._page.span.seconds(time.time())
                        for field, moment in zip((start, end), moments, strict=True):
                            field.set_value(
                                f"{datetime.fromtimestamp(moment, self._page.zone):%Y-%m-%dT%H:%M:%S}"
                            )

                    def apply() -> None:
                        try:
                            span = TimeRange(
                                *(_milliseconds(field.value, self._page.zone) for field in (start, end))
                            )
                        except ValueError as problem:
                            wrong.set_text(str(problem))
                        else:
                            wrong.set_text("")
                            menu.close()
                            self._page.choose_range(span)

                    ui.button("Apply", on_click=apply).props("dense")
                    menu.on("before-show", fill)
                with ui.column().classes("gap-0"):
                    for begin, label in PRESETS.items():
                        ui.menu_item(
                            f"Last {label}", lambda begin=begin: self._page.choose_range(TimeRange(begin))
                        ).props("dense")


def _milliseconds(text: str, zone: tzinfo) -> str:
    """Milliseconds since 1970 of what a date and time input holds. Raises ValueError when it is empty."""
    try:
        return str(int(datetime.fromisoformat(text or "").replace(tzinfo=zone).timestamp() * 1000))
    except ValueError:
        raise ValueError("choose both a from and a to") from None
