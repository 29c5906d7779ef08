"""What a program holds does not show up in what the library says, on any surface."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.explain.attribution import _finding
from heapwatch.explain.census import _described
from heapwatch.explain.describe import Describer
from heapwatch.explain.evidence import Levels
from heapwatch.explain.findings import Explanation, Finding, message, narrative
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.weigh import weigh
from heapwatch.lifecycle import start
from heapwatch.measure.introspection.roots import Root
from heapwatch.runtime.cleanup import described
from heapwatch.watch import Watch

WORD = "frankenstein"
SECRETS = {
    "address": f"{WORD}@example.com",
    "url": f"postgres://user:{WORD}@db/{WORD}",
    "line": f"{WORD}\n\x1b[2J{WORD}",
}


class Account:
    """An object of a program whose text is a secret."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __repr__(self) -> str:
        return WORD

    __str__ = __repr__


def planted(secret: str) -> tuple[Any, dict[str, list[Any]]]:
    """A program's object with a secret as key, attribute and value; and the lists that grow."""
    held = Account()
    lists: dict[str, list[Any]] = {name: [] for name in ("key", "attribute", "nested")}
    held.users = {secret: lists["key"], "known": {"deeper": {secret: lists["nested"]}}}  # type: ignore[attr-defined]
    setattr(held, secret, lists["attribute"])
    return held, lists


def inventory_of(held: Any, now: list[float]) -> Inventory:
    """The paths of an object that the program holds as `it`."""
    inventory = Inventory(
        clock=lambda: now[0], spent=lambda: 0.0, extra_roots=lambda: [Root("it", "it", lambda: held)]
    )
    while not inventory.discover(10):
        pass
    return inventory


def grown(secret: str, levels: Levels) -> list[Finding]:
    """Findings of everything that grows in such an object."""
    held, lists = planted(secret)
    now = [0.0]
    inventory = inventory_of(held, now)
    for now[0] in range(0, 400, 10):
        for filled in (*lists.values(), held.items):
            filled += [Account(), *(f"{secret}{at}" for at in range(2))]
        inventory.lengths.read(10)
    mine = [known for known in inventory.known.values() if known.path.startswith("it")]
    for known in mine:
        weigh(known, inventory, now[0], budget_seconds=1.0)
    candidates = Describer(inventory).describe_all([(known, known.items.growth()) for known in mine])
    return [_finding(candidate, levels, seen=()) for candidate in candidates]


@pytest.fixture
def levels() -> Levels:
    memory = ProcessMemory(lambda: 400.0)
    memory.read_resident()
    return Levels(memory, 0.0, 400.0)


@pytest.mark.slow
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_no_explanation_shows_a_secret(secret: str, levels: Levels) -> None:
    findings = grown(secret, levels)
    paths = {finding.path for finding in findings}
    assert {"it.users[*]", 'it.users["known"]["deeper"][*]', "it.items", "it.*"} <= paths
    explanation = Explanation("leak", 400.0, 1e9, 1.0, tuple(findings), "")
    said = [json.dumps(explanation.as_json()), narrative(explanation), message(explanation)]
    collector = ExplanationCollector(lambda: explanation, dict)
    said.append("\n".join(str(sample) for family in collector.collect() for sample in family.samples))
    for text in said:
        assert WORD not in text
        assert "example.com" not in text


def test_keys_that_are_not_shown_are_read_apart_and_count_together(levels: Levels) -> None:
    """The last of 20 dictionaries under such keys grows: their path does."""
    users = {f"{WORD}-{at}": [0] for at in range(20)}
    now = [0.0]
    inventory = inventory_of(users, now)
    for now[0] in range(0, 100, 10):
        users[f"{WORD}-19"] += [0] * 20
        inventory.lengths.read(10)
    known = inventory.known["it[*]"]
    assert known.multiplicity == 20
    assert (known.items.last or 0.0) * known.multiplicity == pytest.approx(219, abs=1)


class Refused(Exception):
    pass


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = start("private", port=0, interval=0.05)
    yield watch
    watch.stop()


def test_what_sources_and_cleanups_raise_is_in_the_log_alone(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "heapwatch")

    def fail(*_: object) -> Any:
        raise Refused(f"no user {SECRETS['address']}")

    def convert(*_: object) -> Any:
        return int(SECRETS["url"])

    watch.entities("food", fail)
    watch.entities("sheep", convert)
    watch.entities("text", lambda: SECRETS["line"])
    watch.entities("odd", lambda: Account())
    watch.size("policy", fail)
    watch.buffer("replay", items=fail, nbytes=convert)
    watch.on_cleanup(fail)
    watch.on_cleanup(convert)
    watch.on_cleanup(lambda: {SECRETS["address"]: 1})
    watch.on_cleanup(lambda: {"food": Account()})
    watch.on_cleanup(lambda: SECRETS["url"])
    watch.step()
    result = watch._exporter.cleanup_queue.run("regular", "", "trainer")
    server = watch._exporter.server
    assert server is not None
    paths = ("metrics", "performance_status", "explain", "")
    said = [
        *(httpx.get(f"{server.url}{path}").text for path in paths),
        described(result),
        json.dumps(result.as_dict()),
    ]
    assert len(result.errors) == 5
    assert f"Refused: no user {SECRETS['address']}, raised at test_privacy.py" in caplog.text
    assert "expected a number or a sized container, got Account" in caplog.text
    for text in said:
        assert WORD not in text
        assert "example.com" not in text


def test_a_holder_is_described_without_what_it_holds() -> None:
    held: list[Any] = []
    generator = (one for one in ())
    generator.__name__ = generator.__qualname__ = SECRETS["address"]
    for referrer in (generator, {SECRETS["address"]: held}, {SECRETS["url"]: held}):
        assert WORD not in _described(referrer, held)
