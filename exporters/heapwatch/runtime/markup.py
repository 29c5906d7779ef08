"""Small pieces of HTML for notebooks, in which every text is escaped; what stands in backticks is code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from heapwatch.runtime.plain_text import plain


def paragraph(text: object, *, strong: bool = False) -> str:
    """A line of text."""
    shown = _shown(text)
    return f"<p>{f'<strong>{shown}</strong>' if strong else shown}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with text to the left; None is an empty cell. Without rows it is empty."""
    body = ["".join(map(_cell, row)) for row in rows]
    if not body:
        return ""
    head = "".join(f'<th style="text-align:left">{escape(plain(column))}</th>' for column in columns)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"


def _cell(value: object) -> str:
    return f'<td style="text-align:left">{"" if value is None else _shown(value)}</td>'


def _shown(value: object) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(plain(value)))
