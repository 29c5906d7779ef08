"""Garbage among objects, its bytes, and the key that closes a cycle of dicts."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from heapwatch.explain import unreachable as subject
from heapwatch.explain.unreachable import bytes_held, closing_key, tuples_in, unreachable, without_namespaces
from heapwatch.measure.sizing.deep_size import OutOfTime

ENTRY = 40_000  # bytes


class Node:
    def __init__(self) -> None:
        self.other: Any = None


def with_dicts(objects: list[Any]) -> list[Any]:
    """These and the dicts of their instances, where the interpreter has made them."""
    known = set(map(id, objects))
    return objects + [
        part for part in gc.get_referents(*objects) if type(part) is dict and id(part) not in known
    ]


def test_only_what_nothing_else_refers_to_is_unreachable() -> None:
    held, handed = Node(), Node()
    alone, first, second = Node(), Node(), Node()
    alone.other, first.other, second.other = alone, second, first
    reached = Node()
    held.other, reached.other = reached, handed
    nodes = [held, alone, first, second, reached, handed]
    del alone, first, second, reached, handed
    objects = with_dicts(nodes)
    nodes.clear()
    found = unreachable(objects)
    assert without_namespaces(objects, found) == [1, 2, 3]


def test_a_cycle_through_tuples_is_unreachable() -> None:
    node = Node()
    node.other = ((node, 1),)
    objects = with_dicts([node])
    del node
    assert unreachable(objects) == []
    objects += tuples_in(objects)
    found = without_namespaces(objects, unreachable(objects))
    assert [type(objects[at]) for at in found] == [Node, tuple, tuple]


def test_the_dicts_of_instances_are_no_objects_of_their_own() -> None:
    node = Node()
    node.other = {"value": 1}
    assert list(vars(node)) == ["other"]  # makes the dict where the interpreter has not
    # From Python 3.13 on an instance refers to its values and not to the dict that shows them.
    objects = with_dicts([node, node.other])
    assert without_namespaces(objects, list(range(len(objects)))) == [0, 1]
    assert without_namespaces(objects, [1]) == [1]


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


def test_what_the_list_alone_holds_is_no_cycle() -> None:
    cycle, kept, held = Node(), Node(), Node()
    cycle.other = [cycle, kept]
    chain = Node()
    chain.other = [held, Node()]
    objects = with_dicts([cycle, cycle.other, kept, chain, chain.other, chain.other[1], held])
    positions = range(3)
    del cycle, kept, chain
    assert [at for at in unreachable(objects) if at < 7] == list(positions)
    del held
