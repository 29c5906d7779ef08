"""Markdown as GitHub shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from heapwatch.text.terminal import plain


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose cells are Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])


def escaped(text: str) -> str:
    """A text that is shown as it is, also in a cell of a table."""
    return escape(plain(text), quote=False).replace("|", "\\|")
