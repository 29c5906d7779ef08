"""What is said of a growing container: the line, how it is emptied, and how much is looked up at a time."""

from __future__ import annotations

import collections
import functools
import inspect
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from heapwatch.explain import describe
from heapwatch.explain.census import GrowingType
from heapwatch.explain.describe import Describer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.sites import Site
from heapwatch.judge.level import NO_GROWTH
from tests.support.walking import inventory_of


class Trainer:
    def __init__(self) -> None:
        self.first, self.second, self.third = list[int](), list[int](), list[int]()

    def add_to_the_first(self) -> None:
        self.first.append(1)

    def add_to_the_second(self) -> None:
        self.second.append(1)

    def add_to_the_third(self) -> None:
        self.third.append(1)


class Policy:
    def __init__(self) -> None:
        self.weights = np.zeros(10_000)

    @functools.cache  # noqa: B019
    def anchors(self, size: int) -> list[float]:
        return [0.0] * size


class Caller:
    """Runs a library's function that keeps what is handed to it."""

    def __init__(self) -> None:
        self.at = 0

    def run(self, look: Callable[[Any], None]) -> None:
        self.at = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        LIBRARY["learn"](look)


class Replay:
    def __init__(self) -> None:
        self.capacity = 20
        self.stored: collections.deque[int] = collections.deque()

    def push(self, fresh: list[int]) -> None:
        if len(self.stored) == self.capacity:
            self.stored.popleft()
        self.stored.extend(fresh)


class MadeInOnePlace:
    pass


def make() -> Any:
    return MadeInOnePlace()


LIBRARY: dict[str, Any] = {}
exec(  # a module of an installed package
    compile(
        """
class Buffer:
    def __init__(self):
        self.kept_by_library = []

    def fill_of_library(self, look):
        for number in range(20):
            self.kept_by_library.append([number])
        look(self)

def learn(look):
    Buffer().fill_of_library(look)
""",
        f"{sys.prefix}/lib/site-packages/library.py",
        "exec",
    ),
    LIBRARY,
)


def walked(obj: Any) -> Inventory:
    inventory = inventory_of(obj)
    inventory.lengths.read(1.0)
    return inventory


def test_the_code_of_what_grows_by_a_few_bytes_is_not_searched(monkeypatch):
    monkeypatch.setattr(describe, "_SEARCHING_SECONDS", 10.0)
    inventory = walked(Trainer())
    grows = replace(NO_GROWTH, per_second=0.1)
    for known, item_bytes in zip(inventory.known.values(), (100, 100_000, 0), strict=True):
        known.weighed_items = 10.0
        if item_bytes:
            known.held.add(0.0, 10 * item_bytes)
    describer = Describer(inventory)
    growing = [(known, grows) for known in inventory.known.values()]
    assert [one.site is not None for one in describer.describe_all(growing)] == [False, True, False]
    growing[2][0].weigh_failures = 1
    assert [one.site is not None for one in describer.describe_all(growing)] == [False, True, True]


@pytest.mark.parametrize(("pushes", "remedy"), [(18, None), (60, "its limit of 20 items does not hold")])
def test_what_has_passed_its_limit_is_to_be_cut(pushes, remedy):
    replay = Replay()
    for at in range(pushes):
        replay.push([at] if at % 7 else [at, at])
    inventory = walked(replay)
    found = Describer(inventory).describe(inventory.known["it.stored"], NO_GROWTH)
    assert found.capacity == 20
    assert (found.remedy or "").startswith(remedy or "")
    assert bool(found.remedy) == bool(remedy)


def test_a_cached_method_keeps_the_objects_that_it_was_called_on():
    for _ in range(20):
        Policy().anchors(3)
    inventory = walked(Policy.anchors)
    (known,) = (one for one in inventory.known.values() if one.kind == "cache")
    found = Describer(inventory).describe(known, NO_GROWTH)
    assert found.traits.item_type == "Policy"
    assert found.site is not None
    assert (found.site.file, found.site.function.rpartition(".")[2]) == (__file__, "anchors")
    Policy.anchors.cache_clear()


def test_what_has_the_place_of_a_cache_by_now_is_asked_nothing():
    class Asked:
        def __getattr__(self, name):
            pytest.fail(f"its code is run for {name}")

    places = SimpleNamespace(seek=lambda _: Asked())
    assert describe._cached_function(places) is None


def test_a_growing_type_is_reported_with_the_one_line_that_makes_it():
    known = GrowingType(f"{__name__}.MadeInOnePlace")
    found = Describer(Inventory()).describe_type(known, NO_GROWTH)
    assert found.site is not None
    assert (found.site.file, found.site.function) == (__file__, "make")


def test_the_line_that_starts_processes_is_reported_if_there_is_one(monkeypatch):
    def starts() -> None:
        multiprocessing.Process(target=print).start()

    def starts_too() -> None:
        multiprocessing.Pool(2)

    codes = [make.__code__, starts.__code__]
    monkeypatch.setattr(describe, "user_code", lambda: codes)
    found = Describer(Inventory()).processes_started()
    assert found is not None
    assert (found.file, found.line) == (__file__, starts.__code__.co_firstlineno + 1)
    codes.append(starts_too.__code__)
    assert Describer(Inventory()).processes_started() is None


def test_what_a_library_fills_is_reported_with_the_line_that_calls_it():
    caller, found = Caller(), []

    def look(buffer: Any) -> None:
        inventory = walked(buffer)
        known = inventory.known["it.kept_by_library"]
        describer = Describer(inventory)
        # The explainer asks from a thread of its own.
        with ThreadPoolExecutor(1) as other:
            found.append(other.submit(describer.describe, known, NO_GROWTH).result())
        assert describer.is_traceable(known), "where its items are made would say more"

    caller.run(look)
    (described,) = found
    assert described.site is not None
    assert (described.site.file, described.site.line) == (__file__, caller.at)
    assert described.site.function.endswith("run")


class Meter:
    def __init__(self) -> None:
        self.sums = {"loss": torch.zeros(1, requires_grad=True) * 1}

    def update(self, key: str, value: torch.Tensor) -> None:
        self.sums[key] = self.sums.get(key, 0) + value


def test_a_graph_under_a_key_grows_where_the_dict_changes():
    inventory = walked(Meter())
    (graph,) = (known for known in inventory.known.values() if known.kind == "graph")
    found = Describer(inventory).describe(graph, NO_GROWTH)
    assert found.site is not None
    assert found.site.line == Meter.update.__code__.co_firstlineno + 1


class Manager:
    def dict(self) -> dict[int, int]:
        return {}


def fill(of_the_manager: dict[int, int]) -> None:
    of_the_manager[len(of_the_manager)] = 1


def learn() -> Any:
    of_the_manager = Manager().dict()
    fill(of_the_manager)
    return of_the_manager


def test_the_line_that_fills_the_dictionary_of_a_manager_in_another_process(monkeypatch):
    codes = [fill.__code__, learn.__code__]
    monkeypatch.setattr(describe, "user_code", lambda: codes)
    site = Describer(inventory_of([])).hosted_filled_at()
    assert site == Site(__file__, fill.__code__.co_firstlineno + 1, "fill")
    codes.remove(learn.__code__)
    assert Describer(inventory_of([])).hosted_filled_at() is None
