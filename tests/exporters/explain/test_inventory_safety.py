"""Whatever a program is made of, looking at it runs none of its code, keeps nothing alive and never fails."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heapwatch.explain import bounds
from heapwatch.explain.engine import Explainer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.sites import code_of_class
from heapwatch.explain.weigh import traits_of, weigh
from heapwatch.judge.level import NO_GROWTH
from heapwatch.measure.objects.instances import InstanceCounter
from heapwatch.measure.objects.tracked import large_objects
from heapwatch.measure.sizing.deep_size import deep_size
from tests.support import objects_with_code as own
from tests.support.objects_with_code import ARMED, CALLS
from tests.support.walking import inventory_of

MAKERS: tuple[Any, ...] = (
    *(list, dict, set, deque, tuple),
    *(own.Plain, own.Slotted, own.HiddenDict),
    *(own.OwnList, own.OwnDict, own.OwnOrdered, own.OwnDeque, own.OwnSet, own.OwnBytes),
    lambda: own.OwnText("x" * 70_000),
    lambda: "y" * 70_000,
    lambda: (number for number in range(3)),
    lambda: weakref.proxy(own.Plain()),
    lambda: threading.local(),
    lambda: [].append,
    lambda: 5,
)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    CALLS.clear()
    yield
    ARMED[0] = False


def grow(seed: int, size: int) -> list[Any]:
    """Objects that refer to each other at random, cycles among them."""
    gc.freeze()  # so that a collection is of these alone, and not of what Hypothesis keeps of thousands
    chance = random.Random(seed)
    objects = [chance.choice(MAKERS)() for _ in range(size)]
    for _ in range(3 * size):
        join(chance, chance.choice(objects), chance.choice(objects))
    return objects


def join(chance: random.Random, holder: Any, held: Any) -> None:
    kind = type(holder)
    if one_of(kind, list, own.OwnList):
        list.extend(holder, [held] * chance.choice((1, 1, 40)))
    elif one_of(kind, deque, own.OwnDeque):
        deque.append(holder, held)
    elif one_of(kind, dict, own.OwnDict, own.OwnOrdered):
        key = chance.choice(("name", 1, 2.5, chance.random(), own.Plain(), own.OwnText("name")))
        dict.__setitem__(holder, key, held)
    elif one_of(kind, set, own.OwnSet) and one_of(type(held), own.Plain, int):
        try:
            set.add(holder, held)
        except TypeError:
            return
    elif kind is own.Plain:
        vars_of(holder)[chance.choice(("a", "b", "c"))] = held
    elif kind is own.Slotted:
        object.__setattr__(holder, chance.choice(("left", "right")), held)


def one_of(kind: type, *kinds: type) -> bool:
    return any(kind is known for known in kinds)


def vars_of(obj: Any) -> dict[str, Any]:
    return object.__getattribute__(obj, "__dict__")


def examined(objects: list[Any]) -> Inventory:
    """Everything the inventory does to objects, done to these."""
    now = [0.0]
    found = inventory_of(objects, "objects", clock=lambda: now[0])
    for _ in range(3):
        now[0] += 60
        found.lengths.read(10.0)
    for known in list(found.known.values()):
        weigh(known, found, now[0])
        traits_of(known, found)
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), size=st.integers(1, 60))
def test_no_code_of_the_program_runs(seed, size):
    objects = grow(seed, size)
    ARMED[0] = True
    try:
        examined(objects)
    finally:
        ARMED[0] = False
    assert CALLS == []
    gc.collect()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), size=st.integers(1, 40))
def test_nothing_is_kept_alive(seed, size):
    objects = [*grow(seed, size), own.Plain()]
    watched = [weakref.ref(obj) for obj in objects if one_of(type(obj), own.Plain, own.OwnList)]
    found = examined(objects)
    objects.clear()
    gc.collect()
    assert found.rounds
    assert all(ref() is None for ref in watched)


def test_classes_that_a_program_makes_are_let_go():
    made = [
        type(kind.__name__, (kind,), {}) for kind in (own.Plain, own.Slotted, own.HiddenDict, own.OwnList)
    ]
    gone = [weakref.ref(cls) for cls in made]
    objects = [[cls() for _ in range(40)] for cls in made]
    found = examined(objects)
    deep_size(objects, budget_seconds=10.0)
    large_objects(1.0)
    InstanceCounter([dict]).take()
    census = Explainer().evaluator.search.census
    census.count()
    census.inspect([(known, NO_GROWTH) for known in census.types.values()][:50], {}, 50)
    made.clear()
    objects.clear()
    gc.collect()
    assert found.rounds
    assert [ref() for ref in gone] == [None] * len(gone)


def test_objects_that_change_meanwhile_are_no_reason_to_fail():
    objects = grow(1, 50)
    stop = threading.Event()

    def change() -> None:
        chance = random.Random(2)
        while not stop.is_set():
            join(chance, chance.choice(objects), chance.choice(objects))
            holder = chance.choice(objects)
            if one_of(type(holder), list, dict, deque, set) and chance.random() < 0.1:
                type(holder).clear(holder)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            examined(objects)
    finally:
        stop.set()
        thread.join()


def test_millions_of_entries_are_not_walked_through():
    objects: list[Any] = [list(range(3_000_000)), {number: [] for number in range(300_000)}]
    found = examined(objects)
    assert found.visited < 100
    assert found.known["objects[*]"].items.last == (3_000_000 + 300_000) / 2


def test_no_code_of_a_metaclass_runs_while_source_is_read():
    holder = type("Holder", (), {"limit": own.Plain(), "items": ()})
    ARMED[0] = True
    try:
        code_of_class(holder)
        bound = bounds._value("limit", holder())
    finally:
        ARMED[0] = False
    assert (bound, CALLS) == (None, [])
