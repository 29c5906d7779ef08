"""Autograd graphs: which operations a tensor's history holds, by the numbers that torch gives them."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from types import GetSetDescriptorType, MethodDescriptorType
from typing import Any, NamedTuple

from heapwatch.measure.layout import layout_of, namespace_of

_MOST_OPERATIONS = 2000
_LEAF = 2**63  # parameters and inputs are numbered above all operations


class _Readers(NamedTuple):
    number: Callable[[Any], int]
    inputs: Callable[[Any], tuple[tuple[Any, int], ...]]


def graph_of(tensor: Any) -> Any:
    """The operation that made a tensor; None if it keeps none, or is of a class that the program defines."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return None
    return tensor.grad_fn


def newest_operation(tensor: Any) -> int | None:
    """The number of the operation that made a tensor; None if it keeps no history.

    Torch numbers the operations of a thread in the order of their creation.
    """
    first = graph_of(tensor)
    return None if first is None else _number(first)


def holds_operation(tensor: Any, after: int, until: int) -> bool:
    """Whether a tensor's graph holds an operation with a number above `after` and not above `until`.

    Looks at some 2000 operations, the oldest first: in a graph that grows with each step that leads back step
    by step, whatever a step adds to it.
    """
    first = graph_of(tensor)
    if first is None:
        return False
    readers: dict[int, _Readers] = {}
    seen = {id(first): first}
    waiting = [(_number(first), id(first))]
    for _ in range(_MOST_OPERATIONS):
        if not waiting:
            break
        number, key = heapq.heappop(waiting)
        if after < number <= until:
            return True
        for node, _ in _readers_of(seen[key], readers).inputs(seen[key]):
            if node is None or id(node) in seen:
                continue
            number = _readers_of(node, readers).number(node)
            if number < _LEAF:
                seen[id(node)] = node
                heapq.heappush(waiting, (number, id(node)))
    return False


def _number(node: Any) -> int:
    return _readers_of(node, {}).number(node)


def _readers_of(node: Any, known: dict[int, _Readers]) -> _Readers:
    """What reads an operation; `known` has it by the class's id, as long as operations of it are alive."""
    cls = type(node)
    found = known.get(id(cls))
    if found is None:
        found = known[id(cls)] = _make_readers(cls)
    return found


def _make_readers(cls: type) -> _Readers:
    # An operation written by the user is of a class of its own: only the library's accessors are used.
    number: Callable[[Any], int] = _is_leaf
    inputs: Callable[[Any], tuple[tuple[Any, int], ...]] = _no_inputs
    named = _first(cls, "_sequence_nr")
    if type(named) is MethodDescriptorType:
        number = named
    followed = _first(cls, "next_functions")
    if type(followed) is GetSetDescriptorType:
        inputs = followed.__get__
    return _Readers(number, inputs)


def _first(cls: type, name: str) -> Any:
    return next((space[name] for base in layout_of(cls).mro if name in (space := namespace_of(base))), None)


def _is_leaf(node: Any) -> int:
    return _LEAF


def _no_inputs(node: Any) -> tuple[tuple[Any, int], ...]:
    return ()
