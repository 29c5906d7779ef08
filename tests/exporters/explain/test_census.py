from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from heapwatch.explain.census import Census


class Leaked:
    def __init__(self) -> None:
        self.payload = bytearray(5000)


LEAKED = f"{__name__}.Leaked"


@pytest.fixture(autouse=True)
def objects_of_the_test() -> None:
    """Lists of all objects have those that the test makes, and not what other tests have made."""
    gc.collect()
    gc.freeze()


def inspected(census: Census, name: str = "") -> dict[str, tuple[str, ...]]:
    """Holders by name, after all steps of a search for what refers to a growing type, or to all."""
    growing = [entry for entry in census.growing(0.0) if name in ("", entry[0].name)]
    for _ in range(20):
        if not census.is_inspected(growing, 1):
            census.inspect(growing, {}, 1)
    return {known.name: known.holders for known, _ in growing if known.holders is not None}


def counted(census: Census, clock: list[float], make: Callable[[], object], rounds: int = 12) -> None:
    """Count so many times, each after `make` was called."""
    for _ in range(rounds):
        make()
        clock[0] += 10
        assert census.count()


def leaking(kept: list[Any]) -> Callable[[], object]:
    return lambda: kept.extend(Leaked() for _ in range(20))


def test_types_that_become_more_are_found_and_weighed(census, clock):
    kept: list[Leaked] = []
    counted(census, clock, leaking(kept))
    growing = {known.name: (known, growth) for known, growth in census.growing(0.0)}
    known, growth = growing[LEAKED]
    assert growth.per_second == pytest.approx(2.0, rel=0.1)
    nearest = inspected(census, LEAKED)[LEAKED][0]
    assert nearest == "list" or nearest.startswith("frame")
    assert known.each_bytes == pytest.approx(5300, rel=0.1)


def test_what_is_not_read_under_an_audit_hook_is_said(census, clock, monkeypatch):
    kept: list[tuple[Leaked, int]] = []
    counted(census, clock, lambda: kept.extend((Leaked(), at) for at in range(20)))
    assert inspected(census, LEAKED)[LEAKED][0] == "list"
    for module in ("heapwatch.explain.census", "heapwatch.measure.objects.tracked"):
        monkeypatch.setattr(f"{module}.may_have_audit_hooks", lambda: True)
    for known in census.types.values():
        known.holders = None
    told = ("perhaps tuples, which are not read under an audit hook",)
    assert inspected(census, LEAKED)[LEAKED] == told


def test_a_heap_that_takes_too_long_is_not_listed(census, clock):
    census.count()
    clock[0] += 100
    census.count()
    assert census.seconds == 100
    census.pause_limit.allowed = 0.0
    clock[0] += 1000
    assert not census.count()
    assert census.seconds == 0, "what was counted long ago says nothing"
    assert census.search(set()) == []
    assert inspected(census) == {}


class Linked:
    """Refers to the one before it, as a node of a game tree refers to its parent."""

    def __init__(self, before: Linked | None) -> None:
        self.before = before
        self.payload = bytearray(5000)


def test_instances_that_refer_to_each_other_are_weighed_one_by_one(census, clock):
    newest: Linked | None = None

    def make() -> None:
        nonlocal newest
        for _ in range(2000):
            newest = Linked(newest)

    counted(census, clock, make)
    name = f"{__name__}.Linked"
    inspected(census, name)
    known = next(known for known, _ in census.growing(0.0) if known.name == name)
    assert known.each_bytes == pytest.approx(5300, rel=0.1)
    while newest is not None:  # one after the other: a long chain is freed by recursion otherwise
        newest = newest.before


class Pairs:
    def __init__(self) -> None:
        self.history: list[tuple[int, Leaked]] = []


def test_what_only_tuples_hold_is_followed_to_their_holder(census, clock):
    pairs = Pairs()
    counted(census, clock, lambda: pairs.history.extend((at, Leaked()) for at in range(20)))
    chain = inspected(census, LEAKED)[LEAKED]
    assert chain[0] == "list"
    assert any(holder in (f"{__name__}.Pairs", "dict under 'history'") for holder in chain)


def source() -> Iterator[bytearray]:
    while True:
        yield bytearray(3000)


class Cycler:
    def __iter__(self) -> Iterator[bytearray]:
        batches = itertools.cycle(source())
        while True:
            yield next(batches)


def test_a_container_that_no_name_leads_to_is_found_with_its_holders(census, clock):
    iterator = iter(Cycler())
    for _ in range(5):
        for _ in range(100):
            next(iterator)
        clock[0] += 60
        found = census.search(set())
    (held,) = [one for one in found if one.type == "list of bytearray"]
    assert held.items == 500
    assert held.items_per_minute == pytest.approx(100, rel=0.01)
    name = "Cycler.__iter__" if sys.version_info >= (3, 11) else "__iter__"
    assert f"generator {name} (" in " < ".join(held.holders)
    assert held.site is not None
    assert held.site.file == __file__


def test_searching_keeps_nothing_alive(census):
    held = [Leaked() for _ in range(200)]
    census.search(set())
    held.clear()
    gc.collect()
    assert not [obj for obj in gc.get_objects() if type(obj) is Leaked]


class Leaf:
    def __init__(self, parent: Any) -> None:
        self.parent, self.children = parent, dict[int, Any]()


def test_the_newest_objects_tell_the_type_that_piles_up(census, clock):
    tree = [Leaf(None)]
    gc.disable()
    try:
        for _ in range(30):
            tree += [Leaf(tree[0]) for _ in range(200)]
            census.count_newest()
            clock[0] += 10
            gc.collect()
    finally:
        gc.enable()
    name = census.probable_type(0.0, bytes_per_minute=200 * 6 * 500)
    assert name is not None
    assert name.endswith(".Leaf")
    assert census.probable_type(0.0, bytes_per_minute=1e12) is None, "objects are not that large"


def test_memory_that_is_not_of_objects_is_of_no_type(census, clock):
    for _ in range(30):
        census.count_newest()
        clock[0] += 10
    assert census.probable_type(0.0, bytes_per_minute=1e6) is None
