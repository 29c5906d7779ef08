"""The numbers of a document: what is said, or done, one step below each of them, and what at it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

HEADING = "## The numbers of the original\n"


class Boundary(NamedTuple):
    """A number of a document.

    Attributes:
        sentence: of the document.
        said: returns what is said at a level, in words.
        number: the least level, in bytes or items, at which something else is said than below it.
        below: what is said one byte or item below it, and nothing else.
        at: what is said at it, and nothing else.

    """

    sentence: str
    said: Callable[[float], list[str]]
    number: float
    below: list[str]
    at: list[str]


def tried(boundaries: Iterable[Boundary]) -> Callable[[object], None]:
    """A check of each of these numbers, without a running example."""

    def check(_: object) -> None:
        for one in boundaries:
            assert (one.said(one.number - 1), one.said(one.number)) == (one.below, one.at), one.sentence

    return check


def table(boundaries: Iterable[Boundary]) -> str:
    """The numbers as a Markdown table, for the page of the system."""
    lines = ["| the original | one byte or item below | at it |", "|---|---|---|"]
    lines += [f"| {one.sentence} | {_cell(one.below)} | {_cell(one.at)} |" for one in boundaries]
    return "\n".join([*lines, ""])


def _cell(said: list[str]) -> str:
    return "<br>".join(f"`{line}`" for line in said) or "nothing"
