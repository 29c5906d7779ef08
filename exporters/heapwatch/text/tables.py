"""Tables in columns of equal width."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = (), *, head: bool = False) -> list[str]:
    """The rows as lines; `right` are the columns aligned to the right, and a head is underlined."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if head:
        rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], right: Container[int]) -> list[str]:
    cells = enumerate(zip(row, widths, strict=True))
    return [text.rjust(width) if at in right else text.ljust(width) for at, (text, width) in cells]
