"""What `heapwatch top` tells of a process, as text."""

from __future__ import annotations

from collections.abc import Iterable

from heapwatch.cli.seen import Path, Seen
from heapwatch.explain.findings import size_text
from heapwatch.runtime.plain_text import plain

COLUMNS = ("PATH", "TYPE", "ITEMS", "BYTES", "A MINUTE", "LINE")
_MOST_PRINTED = 20


def printed(found: Iterable[Seen]) -> list[str]:
    """What is seen, as lines."""
    lines: list[str] = []
    for one in found:
        lines += [f"{one.trainer} ({one.address}): {one.problem or one.headline}"]
        if one.problem:
            continue
        lines += [f"  memory: {memory_text(one)}"] if one.memory else []
        table = [COLUMNS, *map(cells, one.paths[:_MOST_PRINTED])] if one.paths else []
        widths = [max(len(row[at]) for row in table) for at in range(len(COLUMNS))] if table else []
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return lines


def cells(one: Path, longest: tuple[int, int, int] = (60, 20, 24)) -> tuple[str, ...]:
    """The columns of a path; at most so many characters of its name, its type and its line."""
    return (
        plain(one.path, longest[0]),
        plain(one.type, longest[1]),
        "" if one.items is None else f"{one.items:,.0f}",
        "" if one.bytes is None else size_text(one.bytes),
        "" if not one.bytes_per_minute else f"{one.bytes_per_minute / 1e6:+,.1f} MB",
        plain(one.line or "", longest[2]),
    )


def memory_text(one: Seen) -> str:
    """Memory by part in one line."""
    whole = {part: size_text(held) for part, held in one.memory.items()}
    resident, limit = whole.pop("resident", "unknown"), whole.pop("limit", "")
    parts = ", ".join(f"{held} {plain(part)}" for part, held in whole.items())
    return f"{resident}{f' of {limit}' if limit else ''}{f': {parts}' if parts else ''}"
