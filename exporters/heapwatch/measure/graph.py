"""Autograd graphs: how much history a tensor keeps, and from when."""

from __future__ import annotations

import heapq
import sys
from types import GetSetDescriptorType, MethodDescriptorType
from typing import Any, NamedTuple

from heapwatch.measure.layout import layout_of, namespace_of

MOST_OPERATIONS = 2000
_LEAF = 2**63  # parameters and inputs are numbered above all operations


class History(NamedTuple):
    """The operations that a tensor's graph was seen to hold, `MOST_OPERATIONS` at most.

    Torch numbers the operations of a thread in the order in which they are made.
    """

    operations: int
    oldest: int
    newest: int


def graph_of(tensor: Any) -> Any:
    """The operation that made a tensor; None where it keeps none, or is of a class of the program's own."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return None
    return tensor.grad_fn


def history_of(tensor: Any) -> History | None:
    """What a tensor's graph holds; None where it keeps no history.

    The oldest operation is followed first: in a graph that grows with each step that leads back step by step,
    whatever a step adds to it.
    """
    first = graph_of(tensor)
    if first is None:
        return None
    newest = oldest = _number(first)
    seen = {id(first): first}
    waiting = [(newest, id(first))]
    while waiting and len(seen) < MOST_OPERATIONS:
        number, key = heapq.heappop(waiting)
        oldest = min(oldest, number)
        for node, _ in _inputs(seen[key]):
            if node is not None and id(node) not in seen and (number := _number(node)) < _LEAF:
                seen[id(node)] = node
                heapq.heappush(waiting, (number, id(node)))
    return History(len(seen), min([oldest, *(number for number, _ in waiting[:1])]), newest)


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
