"""Terminal output: the table of services, and progress lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from heapwatch.runtime.plain_text import plain


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
        drawn.add_row(
            row.service, row.address, f"[{color}]{row.state}[/]", f"[{scraped}]{row.scraped}[/]", row.process
        )
    return drawn


class Narrator:
    """Prints each step with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        """Print one line of rich's markup."""
        line = f"[dim]{time.monotonic() - self._began:6.1f} s[/]  {plain(text)}"
        self._console.print(line, highlight=False, soft_wrap=True)


def foreign(text: object) -> str:
    """Escape text from outside for rich's markup."""
    return escape(plain(text, 500))
