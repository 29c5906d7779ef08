"""The bytes of instances: fails in one line where an interpreter keeps attributes in another way."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from heapwatch.measure.sizing.deep_size import deep_size

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
    version = sys.version.partition(" ")[0]
    assert measured == pytest.approx(allocated, rel=0.05), f"CPython {version}: values lie elsewhere"
