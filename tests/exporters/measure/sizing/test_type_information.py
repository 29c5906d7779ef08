"""Bytes of instances against what the interpreter allocates for them, and what may hold more than that."""

from __future__ import annotations

import collections
import datetime
import gc
import re
import sqlite3
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.type_information import holds_memory

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


class WithWeakReferences:
    __slots__ = ("__weakref__", "a", "b")


class Both(WithWeakReferences):
    __slots__ = ("__dict__", "c")


class Failure(ValueError):
    pass


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "obj",
    [
        Plain(1),
        WithWeakReferences(),
        Both(),
        Failure(),
        Point(1, 2),
        object(),
        datetime.datetime.now(),
        re.compile("a"),
        threading.Lock(),
        memoryview(b""),
        iter({}),
        np.random.default_rng(),
        np.dtype("f4"),
        torch.Generator(),
        torch.float32,
        torch.device("cpu"),
        Plain.__dict__,
        print,
        property(print),
        range(3),
        reversed([]),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_what_python_shows_holds_nothing_more(obj: object) -> None:
    assert not holds_memory(layout_of(type(obj)))


@pytest.mark.parametrize(
    "obj",
    [
        PIL.Image.new("L", (1, 1)).im,
        sqlite3.connect(":memory:"),
        zlib.compressobj(),
        torch.zeros(1, requires_grad=True).exp().grad_fn,
        np.core.multiarray._ARRAY_API,
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_a_type_that_nothing_is_known_of_may_hold_anything(obj: object) -> None:
    assert holds_memory(layout_of(type(obj)))


def test_a_class_of_the_program_on_top_of_such_a_type() -> None:
    class Database(sqlite3.Connection):
        pass

    assert holds_memory(layout_of(Database))
