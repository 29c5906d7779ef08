"""Lengths and items of containers that another thread may change, read without running code of the items."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pandas
import pytest
import torch

from heapwatch.measure.introspection.containers import (
    filled_count,
    filled_items,
    first_items,
    is_object_array,
    length_of,
)
from heapwatch.measure.introspection.layout import layout_of


@pytest.mark.parametrize(
    ("obj", "length"),
    [([1, 2], 2), ("text", 4), (b"ab", 2), (np.zeros((3, 4)), 12), (torch.zeros(5), 5), (object(), None)],
)
def test_the_length_of_what_has_one(obj: object, length: int | None) -> None:
    assert length_of(obj, layout_of(type(obj))) == length


def test_a_table_whose_index_remembers_many_views_has_its_rows() -> None:
    table = pandas.DataFrame({"text": ["a"] * 100, "vector": [[1]] * 100})
    views = [table.tail(10) for _ in range(300)]
    assert length_of(table, layout_of(type(table))) == 100
    assert len(views) == 300


def test_the_first_items_of_a_container_that_another_thread_changes() -> None:
    """Fails with an iterator that is made in one instruction and used in the next."""
    members, items, stopped = set(range(100)), {at: at for at in range(100)}, threading.Event()

    def change() -> None:
        while not stopped.is_set():
            members.add(-1)
            items[-1] = 0
            members.discard(-1)
            del items[-1]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20_000):
            assert len(first_items(members, 3)) == 3
            assert len(first_items(items, 3, dict.items, reversed)) == 3
    finally:
        stopped.set()
        thread.join(10)
        sys.setswitchinterval(interval)


class RefusesComparison:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("code of an item runs")

    def __bool__(self) -> bool:
        raise AssertionError("code of an item runs")

    __hash__ = None  # type: ignore[assignment]


class Subclass(np.ndarray):
    pass


def test_only_plain_arrays_of_objects_are_containers() -> None:
    assert is_object_array(np.empty(3, dtype=object))
    assert not is_object_array(np.zeros(3))
    assert not is_object_array(np.empty(3, dtype=object).view(Subclass))
    assert not is_object_array(np.zeros(3, dtype=[("one", object)]))
    assert not is_object_array([None])


@pytest.mark.parametrize("make", [np.empty, np.zeros])
@pytest.mark.parametrize("size", [10, 1000, 50_000])
@pytest.mark.parametrize("share", [0.0, 0.013, 0.5, 0.99, 1.0])
def test_an_array_that_is_filled_from_its_beginning_is_counted_exactly(
    make: Any, size: int, share: float
) -> None:
    array = make(size, object)
    count = round(share * size)
    for at in range(count):
        array[at] = RefusesComparison()
    assert filled_count(array) == count
    assert len(filled_items(array) or []) == count


def test_an_array_of_more_dimensions_is_read_flat() -> None:
    array = np.empty((30, 40), dtype=object)
    array[:3] = "text"
    assert filled_count(array) == 120
    assert filled_items(array) == ["text"] * 120
