"""Garbage among objects, its bytes, and the key that closes a cycle of dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heapwatch.explain import unreachable as subject
from heapwatch.explain.unreachable import bytes_held, closing_key, tuples_in, unreachable
from heapwatch.measure.deep_size import OutOfTime

ENTRY = 40_000  # bytes


class Node:
    def __init__(self) -> None:
        self.other: Any = None


def test_only_what_nothing_else_refers_to_is_unreachable() -> None:
    held, handed = Node(), Node()
    alone, first, second = Node(), Node(), Node()
    alone.other, first.other, second.other = alone, second, first
    reached = Node()
    held.other, reached.other = reached, handed
    objects = [held, alone, first, second, reached, handed]
    del alone, first, second, reached, handed
    assert unreachable(objects) == [1, 2, 3]


def test_a_cycle_through_tuples_is_unreachable() -> None:
    node = Node()
    node.other = ((node, 1),)
    objects: list[Any] = [node]
    del node
    assert unreachable(objects) == []
    objects += tuples_in(objects)
    assert [type(objects[at]) for at in unreachable(objects)] == [Node, tuple, tuple]


def cycle(**parts: Any) -> dict[str, Any]:
    made = dict(parts)
    made["last"] = made
    return made


def test_an_array_counts_if_only_garbage_refers_to_it() -> None:
    shared = np.zeros(ENTRY // 8)
    objects = [cycle(array=np.zeros(ENTRY // 8)), cycle(array=shared)]
    held = bytes_held(objects, [0, 1])
    assert held is not None
    assert ENTRY < held < 1.5 * ENTRY


def test_bytes_are_unknown_where_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(subject, "deep_size", late)
    assert bytes_held([cycle(array=np.zeros(ENTRY // 8))], [0]) is None


def test_the_key_that_leads_back_is_named() -> None:
    assert closing_key([cycle(other=[1]), cycle(), {"last": None}], [0, 1, 2]) == "last"
    assert closing_key([{"last": None}], [0]) is None
    assert closing_key([cycle()], []) is None
