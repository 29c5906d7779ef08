"""What is known of a class before its instances are looked at."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.deep_size import deep_size


def test_a_class_without_a_module_has_a_layout() -> None:
    scope: dict[str, type] = {}
    exec("Body = type('Body', (), {})", scope)  # `type` takes the module from a `__name__` that is not there
    assert not hasattr(scope["Body"], "__module__")
    layout = layout_of(scope["Body"])
    assert layout.kind == "object"
    assert (layout.name, layout.module) == ("Body", "builtins")


def test_a_class_that_is_being_made_is_a_plain_object_until_it_is_complete():
    found = []

    class Making(type):
        def mro(cls):
            found.append(layout_of(cls).mro)
            return super().mro()

    class Made(metaclass=Making):
        pass

    assert found == [(object,)]
    assert layout_of(Made).mro == (Made, object)


INSTANCES = 2000


class Plain:
    def __init__(self, number: int) -> None:
        self.reward = float(number)
        self.observation = [number]
        self.info = None


class WithDict:
    def __init__(self, number: int) -> None:
        self.reward = float(number)
        self.table = {"number": float(number)}


class Slotted:
    __slots__ = ("observation", "reward")

    def __init__(self, number: int) -> None:
        self.reward = float(number)
        self.observation = [number]


def extended(number: int) -> Plain:
    made = Plain(number)
    made.late = float(number)  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("make", [Plain, WithDict, Slotted, extended])
def test_instances_have_the_bytes_that_were_allocated(make: Callable[[int], Any]) -> None:
    warm_up = [make(number) for number in range(300)]  # later instances are smaller
    kept: list[Any] = [None] * INSTANCES
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(INSTANCES):
        kept[at] = make(1000 + at)
    allocated = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    warm_up.clear()
    measured = deep_size(kept, budget_seconds=60).bytes - 8 * INSTANCES
    assert measured == pytest.approx(allocated, rel=0.05)
