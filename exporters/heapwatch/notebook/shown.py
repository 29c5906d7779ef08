"""What the magics show: text in a terminal, tables in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heapwatch.explain.findings import size_text
from heapwatch.notebook.holders import Holder
from heapwatch.notebook.looks import Grown
from heapwatch.runtime.plain_text import paragraph, plain, table


@dataclass(frozen=True)
class Shown:
    """What a magic has found.

    Attributes:
        headline: the memory of the process, in words.
        grown: what has grown, with its line in words.
        most: what holds most; empty where that was not asked for.
        kept: what IPython keeps.
        notes: further lines.

    """

    headline: str
    grown: Sequence[tuple[Grown, str | None]]
    most: Sequence[Holder] = ()
    kept: Sequence[Holder] = ()
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [self.headline]
        lines += [f"  +{size_text(one.bytes):<8} {_in_words(one, line)}" for one, line in self.grown]
        if self.most:
            lines.append("holds most:")
            lines += [f"   {size_text(one.bytes):<8} {one.name} ({one.type})" for one in self.most]
        lines += [_kept(one) for one in self.kept]
        return "\n".join(map(plain, [*lines, *self.notes]))

    def as_html(self) -> str:
        """The same as HTML."""
        grown = [
            (one.path, one.about, f"+{size_text(one.bytes)}", _items(one), line, one.remedy)
            for one, line in self.grown
        ]
        held = [(one.name, one.type, size_text(one.bytes)) for one in self.most]
        return (
            paragraph(self.headline, strong=True)
            + table(("path", "type", "bytes", "items", "line", "suggested"), grown)
            + table(("holds most", "type", "bytes"), held)
            + "".join(map(paragraph, [*map(_kept, self.kept), *self.notes]))
        )


def _in_words(one: Grown, line: str | None) -> str:
    items = _items(one)
    facts = f"{one.about}, {items} items" if items else one.about
    text = f"{one.path} ({facts})" + (f", filled at {line}" if line else "")
    return f"{text}. Suggested: {one.remedy}." if one.remedy else text


def _items(one: Grown) -> str | None:
    return None if one.items is None else f"{one.items:+,.0f}"


def _kept(one: Holder) -> str:
    return f"{one.name} keeps {size_text(one.bytes)}: {one.remedy}"
