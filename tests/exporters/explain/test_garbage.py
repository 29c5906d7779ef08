from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from heapwatch.explain import describe
from heapwatch.explain.census import Census
from heapwatch.explain.describe import Describer
from heapwatch.explain.findings import Finding
from heapwatch.explain.garbage import Garbage, Uncollected, tuples_in, unreachable
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.memory import ProcessMemory
from heapwatch.judge.memory import MemoryGrowth

EVERY = 8.0  # seconds between two looks at the objects
ENTRY = 8_000  # bytes


class Holder:
    __slots__ = ("itself", "payload")  # before Python 3.11 a dictionary of attributes is an object, too

    def __init__(self, number: int) -> None:
        self.payload = np.full(ENTRY // 8, number)
        self.itself: Holder | None = None


@pytest.fixture
def uncollected(census: Census, clock: list[float]) -> Iterator[Uncollected]:
    gc.collect()
    gc.disable()
    yield Uncollected(census, lambda: clock[0])
    gc.enable()


def cycles(count: int) -> None:
    for number in range(count):
        one = Holder(number)
        one.itself = one


def run(uncollected: Uncollected, clock: list[float], rounds: int, make: Any) -> Any:
    """What was found after so many rounds of `make`."""
    uncollected.count()
    for _ in range(rounds):
        make()
        clock[0] += EVERY
        uncollected.count()
        uncollected.examine()
    return uncollected.latest


def levels_after(seconds: float, bytes_per_second: float = 1e6) -> MemoryGrowth:
    """The levels of a process that has grown at this rate from the start."""
    memory = ProcessMemory(lambda: 0.0)
    for second in range(round(seconds)):
        memory.private.add(float(second), 1e9 + bytes_per_second * second)
    memory.resident.add(seconds, 1e9 + bytes_per_second * seconds)
    return MemoryGrowth(memory, 0.0, seconds)


def described(uncollected: Uncollected, levels: MemoryGrowth) -> Finding:
    (found,) = Describer(Inventory()).describe_garbage(uncollected, levels)
    return found


def test_garbage_is_distinguished_from_living_objects_with_its_rate_and_its_bytes(uncollected, clock):
    living: list[Holder] = []

    def make() -> None:
        cycles(100)
        living.extend(Holder(number) for number in range(50))

    found = run(uncollected, clock, 12, make)
    assert f"{__name__}.Holder" in found.types
    assert uncollected.garbage.last == pytest.approx(1200, rel=0.1)
    assert found.each_bytes == pytest.approx(ENTRY, rel=0.1)
    assert uncollected.per_second(30.0) == pytest.approx(100 / EVERY, rel=0.1)


def test_without_cycles_there_is_no_garbage_and_no_finding(uncollected, clock):
    living: list[Holder] = []
    run(uncollected, clock, 6, lambda: living.extend(Holder(number) for number in range(30)))
    assert f"{__name__}.Holder" not in uncollected.latest.types
    run(uncollected, clock, 6, lambda: cycles(20))
    levels = levels_after(clock[0])
    assert described(uncollected, levels)
    uncollected.latest = Garbage(0, 0.0, None, ())
    assert not Describer(Inventory()).describe_garbage(uncollected, levels)


def test_what_living_objects_share_with_garbage_does_not_count(uncollected, clock):
    shared = np.zeros(1_000_000)

    def make() -> None:
        for _ in range(20):
            info: dict[str, Any] = {"observation": shared}
            info["final_info"] = info

    run(uncollected, clock, 4, make)
    assert uncollected.latest.bytes < 1e6


def test_garbage_is_named_though_the_number_of_living_objects_levels_off(uncollected, clock):
    """Series of readings, for one, become many objects at first and then no more."""
    living: list[list[Any]] = []

    def make() -> None:
        cycles(80)
        living.extend([[]] for _ in range(max(0, 2000 - 100 * round(clock[0] / EVERY))))

    run(uncollected, clock, 40, make)
    levels = levels_after(clock[0], 80 * ENTRY / EVERY)
    assert not uncollected.counts.growth(levels.startup_end).rising
    found = described(uncollected, levels)
    assert "Holder" in found.type
    assert not found.inferred
    assert found.bytes_per_minute == pytest.approx(levels.per_minute, rel=0.1)


@pytest.mark.parametrize("living", [True, False])
def test_growth_is_inferred_where_the_objects_cannot_be_listed(uncollected, census, clock, living):
    census.pause_limit.allowed = 0.0
    kept: list[Any] = []
    run(uncollected, clock, 20, lambda: kept.extend([at] for at in range(1000)) if living else cycles(100))
    found = described(uncollected, levels_after(clock[0]))
    assert found.inferred
    assert found.type == "objects made while the collector is off, in cycles or not"
    assert not found.holders


def test_the_line_that_closes_a_cycle_of_dicts_is_found(uncollected, clock, monkeypatch):
    def step() -> None:
        for _ in range(20):
            infos: dict[str, Any] = {"success": [True]}
            infos["final_observation"] = np.zeros(ENTRY // 8)
            infos["final_infos"] = infos

    run(uncollected, clock, 20, step)
    assert uncollected.latest.key == "final_infos"
    monkeypatch.setattr(describe, "user_code", lambda: [step.__code__])
    found = described(uncollected, levels_after(clock[0], 1e5))
    assert found.site is not None
    assert found.site.line == step.__code__.co_firstlineno + 4


class Node:
    def __init__(self) -> None:
        self.other: Any = None


def with_dicts(objects: list[Any]) -> list[Any]:
    """These and the dicts of their instances, where the interpreter has made them."""
    known = set(map(id, objects))
    return objects + [
        part for part in gc.get_referents(*objects) if type(part) is dict and id(part) not in known
    ]


def test_a_cycle_through_tuples_is_unreachable():
    node = Node()
    node.other = ((node, 1),)
    objects = with_dicts([node])
    del node
    assert unreachable(objects) == []
    objects += tuples_in(objects)
    found = [type(objects[at]) for at in unreachable(objects)]
    assert [kind for kind in found if kind is not dict] == [Node, tuple, tuple]


def test_what_the_list_alone_holds_is_no_cycle():
    cycle, kept, held = Node(), Node(), Node()
    cycle.other = [cycle, kept]
    chain = Node()
    chain.other = [held, Node()]
    objects = with_dicts([cycle, cycle.other, kept, chain, chain.other, chain.other[1], held])
    positions = range(3)
    del cycle, kept, chain
    assert [at for at in unreachable(objects) if at < 7] == list(positions)
    del held
