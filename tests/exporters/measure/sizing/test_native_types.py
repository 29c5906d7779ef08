"""Which types may hold memory that Python does not show."""

import collections
import datetime
import re
import sqlite3
import threading
import zlib

import numpy as np
import PIL.Image
import pytest
import torch

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.type_information import holds_memory


class Plain:
    pass


class Slotted:
    __slots__ = ("__weakref__", "a", "b")


class Both(Slotted):
    __slots__ = ("__dict__", "c")


class Failure(ValueError):
    pass


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "obj",
    [
        Plain(),
        Slotted(),
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
def test_what_python_shows_holds_nothing_more(obj):
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
def test_a_type_that_nothing_is_known_of_may_hold_anything(obj):
    assert holds_memory(layout_of(type(obj)))


def test_a_class_of_the_program_on_top_of_such_a_type():
    class Database(sqlite3.Connection):
        pass

    assert holds_memory(layout_of(Database))
