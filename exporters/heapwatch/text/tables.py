"""Tables in columns of equal width."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(
    rows: Sequence[Sequence[str]], *, right: Container[int] = (), between: str = "  ", head: bool = False
) -> list[str]:
    """The rows of a table as lines.

    Args:
        rows: rows of equal length.
        right: the columns that are aligned to the right.
        between: what separates two columns.
        head: whether the first row is a head, and is underlined.

    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        between.join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if head:
        lines.insert(1, between.join("-" * width for width in widths))
    return lines
