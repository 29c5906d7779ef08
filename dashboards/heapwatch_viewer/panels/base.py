"""The input and output of panel types, functions that several of them use, and the smallest type."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from heapwatch_viewer.fields import PALETTE, Field, field_for, ink
from heapwatch_viewer.model import Panel
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

# Grafana's calculations: what a legend calls each, and how it makes one number of several.
CALCULATIONS: dict[str, tuple[str, Callable[[list[float]], float]]] = {
    "lastNotNull": ("Last", lambda numbers: numbers[-1]),
    "max": ("Max", max),
    "sum": ("Total", sum),
}


@dataclass(frozen=True)
class Mark:
    """An annotation at a moment, in seconds since 1970. `panels` has ids, none for all panels."""

    moment: float
    text: str
    color: str
    panels: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answers:
    """The answers to a panel's queries.

    Attributes:
        series: every series of every query, already named by its legend.
        window: the time range that they cover.
        link: completes an address found in the panel (variables, time range, then the given fields).
        marks: annotations to draw on time axes.

    """

    panel: Panel
    series: list[Series]
    window: Window
    link: Callable[[str, dict[str, str]], str]
    marks: list[Mark] = field(default_factory=list)

    def fields(self) -> Iterator[tuple[Series, Field]]:
        """Each series with its display options."""
        for one in self.series:
            yield one, field_for(self.panel.raw, one)


@dataclass(frozen=True)
class Chart:
    """A chart: ECharts' options, the unit of its value axis for the browser, and HTML."""

    options: dict[str, Any]
    unit: dict[str, Any] | None = None
    legend: str = ""


@dataclass(frozen=True)
class Html:
    """A panel that is plain HTML, escaped already."""

    body: str


def nothing(panel: Panel) -> str:
    """The text of a panel without data, escaped; after two spaces follows a line to copy."""
    no_value = panel.raw.get("fieldConfig", {}).get("defaults", {}).get("noValue") or "No data"
    says, _, line = no_value.partition("  ")
    code = f"<code>{escape(line)}</code>" if line else ""
    return f'<div class="empty">{escape(says)}{code}</div>'


def reduced(points: Sequence[tuple[float, float]], calculation: str = "lastNotNull") -> float | None:
    """`points` as one number, by one of CALCULATIONS; None when there is none."""
    numbers = [value for _, value in points if not math.isnan(value)]
    return CALCULATIONS[calculation][1](numbers) if numbers else None


def stat(answers: Answers) -> Html:
    """A stat panel: every series as a tile with one big number, coloured by its thresholds."""
    tiles = "".join(_tile(answers, series, field) for series, field in answers.fields())
    return Html(f'<div class="tiles">{tiles}</div>' if tiles else nothing(answers.panel))


def _tile(answers: Answers, series: Series, field: Field) -> str:
    options = answers.panel.options
    value = reduced(series.points)
    paint = field.paint(value) or "var(--text)"
    filled = options.get("colorMode") == "background"
    style = f"background:{paint}; color:#111" if filled else f"color:{ink(paint)}"
    named = options.get("textMode") == "value_and_name"
    name = f'<div class="name">{escape(field.name)}</div>' if named else ""
    shown = escape(field.text(value))
    return f'<div class="tile" style="{style}">{name}<div class="value">{shown}</div></div>'


def painted(field_: Field, index: int, value: float | None) -> str:
    """The colour of the series at `index`: fixed, by threshold, or the next of the palette."""
    by_threshold = field_.paint(value) if field_.color_mode == "thresholds" else None
    return field_.color or by_threshold or PALETTE[index % len(PALETTE)]
