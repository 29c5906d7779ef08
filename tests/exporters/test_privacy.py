"""What a program works on is not shown: keys only as identifiers, values and texts of objects never."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.explain.attribution import _finding
from heapwatch.explain.census import _in_words
from heapwatch.explain.describe import Describer
from heapwatch.explain.findings import Explanation, message, narrative
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.weigh import weigh
from heapwatch.judge.memory import MemoryGrowth
from tests.support.walking import inventory_of

WORD = "nietsneknarf"
SECRETS = (f"{WORD}@example.com", f"postgres://user:{WORD}@db/{WORD}", f"{WORD}\n\x1b[2J{WORD}")


class Account:
    """An object of a program whose text is a secret."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __repr__(self) -> str:
        return WORD

    __str__ = __repr__


def test_names_of_attributes_classes_and_functions_are_shown() -> None:
    held = Account()
    setattr(held, WORD, {})
    inventory = inventory_of(held)
    assert f"it.{WORD}" in inventory.known
    assert _in_words(type(WORD, (), {"__module__": "trainer"})(), held) == f"trainer.{WORD}"


@pytest.mark.parametrize("secret", SECRETS)
def test_no_explanation_shows_a_key_a_value_or_a_text(secret: str) -> None:
    held, now = Account(), [0.0]
    users: list[Any] = []
    nested: list[Any] = []
    held.users = {secret: users, "known": {"deeper": {secret: nested}}}  # type: ignore[attr-defined]
    inventory = inventory_of(held, clock=lambda: now[0])
    for now[0] in range(0, 400, 10):
        for filled in (users, nested, held.items):
            filled += [Account(), *(f"{secret}{at}" for at in range(2))]
        inventory.lengths.read(10)
    mine = [known for known in inventory.known.values() if known.path.startswith("it")]
    for known in mine:
        weigh(known, inventory, now[0], budget_seconds=1.0)
    candidates = Describer(inventory).describe_all([(known, known.items.growth()) for known in mine])
    memory = ProcessMemory(lambda: 400.0)
    memory.read_resident()
    findings = [_finding(candidate, MemoryGrowth(memory, 0.0, 400.0), seen=()) for candidate in candidates]
    assert {"it.users[*]", 'it.users["known"]["deeper"][*]', "it.items"} <= {one.path for one in findings}
    explanation = Explanation("leak", 400.0, 1e9, 1.0, tuple(findings), "")
    collector = ExplanationCollector(SimpleNamespace(now=lambda: explanation, judged_at=1.0, spent_on={}))
    exposed = "\n".join(str(sample) for family in collector.collect() for sample in family.samples)
    for text in (json.dumps(explanation.as_json()), narrative(explanation), message(explanation), exposed):
        assert WORD not in text
        assert "example.com" not in text


def test_keys_that_are_not_shown_are_read_apart_and_count_together() -> None:
    """The last of 20 dictionaries under such keys grows: their path does."""
    users = {f"{WORD}-{at}": [0] for at in range(20)}
    now = [0.0]
    inventory = inventory_of(users, clock=lambda: now[0])
    for now[0] in range(0, 100, 10):
        users[f"{WORD}-19"] += [0] * 20
        inventory.lengths.read(10)
    known = inventory.known["it[*]"]
    assert known.multiplicity == 20
    assert (known.items.last or 0.0) * known.multiplicity == pytest.approx(219, abs=1)
