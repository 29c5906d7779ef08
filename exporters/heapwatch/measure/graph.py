"""Autograd graphs: which operations a tensor's history holds, by the numbers that torch gives them."""

from __future__ import annotations

import heapq
import sys
from types import GetSetDescriptorType, MethodDescriptorType
from typing import Any

from heapwatch.measure.layout import layout_of, namespace_of

_MOST_OPERATIONS = 2000
_LEAF = 2**63  # parameters and inputs are numbered above all operations


def graph_of(tensor: Any) -> Any:
    """The operation that made a tensor; None where it keeps none, or is of a class of the program's own."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return None
    return tensor.grad_fn


def newest_operation(tensor: Any) -> int | None:
    """The number of the operation that made a tensor; None where it keeps no history.

    Torch numbers the operations of a thread in the order in which they are made.
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
    seen = {id(first): first}
    waiting = [(_number(first), id(first))]
    for _ in range(_MOST_OPERATIONS):
        if not waiting:
            break
        number, key = heapq.heappop(waiting)
        if after < number <= until:
            return True
        for node, _ in _inputs(seen[key]):
            if node is not None and id(node) not in seen and (number := _number(node)) < _LEAF:
                seen[id(node)] = node
                heapq.heappush(waiting, (number, id(node)))
    return False


def _number(node: Any) -> int:
    # An operation written by the user is of a class of its own: only the library's accessors are used.
    for base in layout_of(type(node)).mro:
        reader = namespace_of(base).get("_sequence_nr")
        if reader is not None:
            return int(reader(node)) if type(reader) is MethodDescriptorType else _LEAF
    return _LEAF


def _inputs(node: Any) -> tuple[tuple[Any, int], ...]:
    for base in layout_of(type(node)).mro:
        reader = namespace_of(base).get("next_functions")
        if reader is not None:
            return tuple(reader.__get__(node)) if type(reader) is GetSetDescriptorType else ()
    return ()
