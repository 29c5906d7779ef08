"""What an attack is, and what it leaves: what was sent, what came back, and whether the defence held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from heapwatch.runtime.plain_text import plain
from tests.alerting.stage import Stage

LONGEST = 160


class NotHere(Exception):
    """This machine lacks what the attack needs; the message says what."""


@dataclass
class Exchange:
    """What was sent and what came back, in order."""

    lines: list[str] = field(default_factory=list)

    def sent(self, what: object) -> None:
        self.lines.append(f"> {plain(what, LONGEST)}")

    def back(self, what: object) -> None:
        self.lines.append(f"< {plain(what, LONGEST)}")

    def answered(self, what: object, answer: httpx.Response, *expected: int) -> None:
        """A request and its answer, which must have one of these statuses."""
        self.sent(what)
        self.back(f"{answer.status_code} {answer.text.strip()}")
        assert answer.status_code in expected, what


@dataclass(frozen=True)
class Attack:
    """`row` is the row of SECURITY.md; `quick` ones run in the ordinary test suite too."""

    row: str
    run: Callable[[Stage, Exchange], Any]
    quick: bool


ATTACKS: dict[str, Attack] = {}


def attack(row: str, *, quick: bool = True) -> Callable[[Callable[[Stage, Exchange], Any]], Any]:
    """Put an attack on the list under the text of its row."""

    def add(function: Callable[[Stage, Exchange], Any]) -> Callable[[Stage, Exchange], Any]:
        def run(stage: Stage, exchange: Exchange) -> None:
            try:
                function(stage, exchange)
            finally:
                stage.clear()

        ATTACKS[row] = Attack(row, run, quick)
        return function

    return add
