"""What every panel type is given, and what it gives back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from heapwatch_viewer.fields import PALETTE, Field, field_for
from heapwatch_viewer.model import Panel
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window


@dataclass(frozen=True)
class Mark:
    """An annotation on the time axis; times in seconds since 1970. `panels` has ids, none for all panels."""

    start: float
    end: float
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
        """Each series with how it is to be shown."""
        for one in self.series:
            yield one, field_for(self.panel.raw, one)


@dataclass(frozen=True)
class Chart:
    """A chart: options of ECharts, and the units of its axes for the browser to write numbers with.

    Attributes:
        legend: HTML.
        placement: of the legend, `bottom` or `right`.

    """

    options: dict[str, Any]
    units: list[dict[str, Any]] = field(default_factory=list)
    legend: str = ""
    placement: str = "bottom"


@dataclass(frozen=True)
class Html:
    """A panel that is plain HTML, escaped already."""

    body: str


def nothing(panel: Panel) -> str:
    """What a panel without data says instead, escaped; what follows two spaces is a line to copy."""
    no_value = panel.raw.get("fieldConfig", {}).get("defaults", {}).get("noValue") or "No data"
    says, _, line = no_value.partition("  ")
    code = f"<code>{escape(line)}</code>" if line else ""
    return f'<div class="empty">{escape(says)}{code}</div>'


def painted(field_: Field, index: int, value: float | None = None) -> str:
    """The colour of the series at `index`: fixed, by threshold, or the next of the palette."""
    if field_.color:
        return field_.color
    if field_.color_mode == "thresholds" and value is not None:
        by_threshold = field_.paint(value)
        if by_threshold:
            return by_threshold
    return PALETTE[index % len(PALETTE)]


def anchor(answers: Answers, links: tuple[dict[str, Any], ...], values: dict[str, str], text: str) -> str:
    """`text`, already escaped, wrapped in the first of `links` if there is one."""
    if not links:
        return text
    address = escape(answers.link(links[0]["url"], values), quote=True)
    title = escape(links[0].get("title", ""), quote=True)
    return f'<a href="{address}" title="{title}">{text}</a>'
