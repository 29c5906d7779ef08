"""What empties a container as a whole, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from heapwatch.explain.describe import Describer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.statements import statements_of
from heapwatch.judge.level import NO_GROWTH
from heapwatch.measure.introspection.roots import frame_roots
from tests.support.walking import inventory_from, inventory_of


class Rows:
    def __init__(self) -> None:
        self.rows: list[int] = []

    def add(self, row: int) -> None:
        self.rows.append(row)


class Swapped(Rows):
    def take_swapped(self) -> list[int]:
        batch, self.rows = self.rows, []
        return batch


class Cleared(Rows):
    def take_cleared(self) -> None:
        self.rows.clear()


class Deleted(Rows):
    def take_deleted(self) -> None:
        del self.rows[:]


class Overwritten(Rows):
    def take_overwritten(self) -> None:
        self.rows[:] = []


class NeverCalled(Rows):
    def take_that_nobody_calls(self) -> None:
        self.rows.clear()


class OneByOne(Rows):
    def take_one(self) -> int:
        return self.rows.pop()


class ByKey(Rows):
    def forget(self, key: int) -> None:
        del self.rows[key]


class Rollout:
    def __init__(self) -> None:
        self.parts = Rows()


class Owner:
    def __init__(self) -> None:
        self.rollout = Rollout()

    def begin_rollout(self) -> None:
        self.rollout = Rollout()


def calls(one: Any) -> None:
    one.take_swapped(), one.take_cleared(), one.take_deleted(), one.take_overwritten(), one.take_one()
    one.forget(0), one.begin_rollout()


def test_the_line_that_empties_it_is_suggested():
    inventory = inventory_of(Cleared())
    found = Describer(inventory).describe(inventory.known["it.rows"], NO_GROWTH)
    line = Cleared.take_cleared.__code__.co_firstlineno + 1
    assert found.remedy == f"empty it before it is too large, as at test_emptying.py:{line}"


def emptied(inventory: Inventory, path: str) -> str:
    known = inventory.known[path]
    return Describer(inventory).describe(known, NO_GROWTH).emptied


@pytest.mark.parametrize(
    ("cls", "how"),
    [
        (Swapped, "whole"),
        (Cleared, "whole"),
        (Deleted, "whole"),
        (Overwritten, "whole"),
        (NeverCalled, "never"),
        (OneByOne, "some"),
        (ByKey, "some"),
        (Rows, "never"),
    ],
)
def test_how_a_container_is_emptied(cls, how):
    kept = cls()
    assert emptied(inventory_of(kept), "it.rows") == how


def test_a_container_is_emptied_with_what_it_is_in():
    owner = Owner()
    assert emptied(inventory_of(owner), "it.rollout.parts.rows") == "whole"


def runs_in_rounds(look: Callable[[], str]) -> str:
    for _ in range(1):
        fresh = Rows()
        fresh.add(1)
        found = look()
    return found


def runs_once(look: Callable[[], str]) -> str:
    fresh = Rows()
    for _ in range(1):
        fresh.add(1)
        found = look()
    return found


@pytest.mark.parametrize(("run", "how"), [(runs_in_rounds, "whole"), (runs_once, "never")])
def test_a_local_variable_is_made_anew_in_its_loop(run, how):
    def look() -> str:
        root = next(one for one in frame_roots() if one.label == f"{run.__name__}()")
        return emptied(inventory_from(root), f"{run.__name__}().fresh.rows")

    with ThreadPoolExecutor(1) as other:  # the functions of the thread that looks are left out
        assert run(lambda: other.submit(look).result()) == how


def test_a_variable_that_gets_an_old_object_in_a_loop_is_not_made_anew():
    def run(held: Any) -> None:
        for one in held:
            rows = one.rows
            rows.append(1)

    deeds = [deed for name, _, deed, _ in statements_of(run.__code__).acts if name == "rows"]
    assert "grows" in deeds
    assert not {"resets", "renews"} & set(deeds)


class Episodes(Rows):
    def _init(self) -> None:
        self.rows = []

    def init_episode(self) -> None:
        self.rows = []


@pytest.mark.parametrize(("begin", "again"), [(Episodes._init, False), (Episodes.init_episode, True)])
def test_what_sets_up_an_object_runs_once_and_what_begins_an_episode_again(begin, again):
    deeds = {deed for name, _, deed, _ in statements_of(begin.__code__).acts if name == "rows"}
    assert ("renews" in deeds) is again
