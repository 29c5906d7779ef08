"""Terminal output: the table of services, and progress lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heapwatch.text.terminal import literal

_WIDTH = 14  # of what a line is about


@dataclass(frozen=True)
class ServiceStatus:
    """A row of the table; `scraped` is the target's state in Prometheus, `process` a pid or container."""

    service: str
    address: str
    state: str
    scraped: str
    process: str

    @property
    def healthy(self) -> bool:
        """Whether the service is healthy and scraped."""
        return self.state == "healthy" and self.scraped == "up"


def table(rows: Sequence[ServiceStatus]) -> Table:
    """The table of services."""
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("service", "address", "state", "scraped", "process"):
        drawn.add_column(column, no_wrap=True)
    for row in rows:
        color = "green" if row.state == "healthy" else "red"
        scraped = "green" if row.scraped == "up" else "yellow"
        colors = ("", "", color, scraped, "")
        cells = (row.service, row.address, row.state, row.scraped, row.process)
        drawn.add_row(*map(literal, cells, colors))
    return drawn


class Narrator:
    """Prints each step with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        """Print one line."""
        self.tell("", text)

    def tell(self, about: str, text: str, style: str = "bold") -> None:
        """Print one line after its subject, which has this style."""
        elapsed = literal(f"{time.monotonic() - self._began:6.1f} s", "dim")
        subject = literal(about.ljust(_WIDTH) if about else "", style)
        self._console.print(Text.assemble(elapsed, "  ", subject, literal(text)), soft_wrap=True)
