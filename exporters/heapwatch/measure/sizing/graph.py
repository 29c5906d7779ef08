"""Autograd graphs: which operations a tensor's history holds, by the numbers that torch gives them."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Sequence
from types import GetSetDescriptorType, MethodDescriptorType
from typing import Any, NamedTuple
from weakref import ref

from heapwatch.measure.introspection.exclusive_reads import read_alone
from heapwatch.measure.introspection.layout import layout_of, namespace_of

_MOST_OPERATIONS = 2000
_LEAF = 2**63  # parameters and inputs are numbered above all operations


class _Readers(NamedTuple):
    number: Callable[[Any], int]
    inputs: Callable[[Any], tuple[tuple[Any, int], ...]]


def has_graph(tensor: Any) -> bool:
    """Whether a tensor keeps the operations that made it; not told of a class that the program defines."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return False
    return not tensor.is_leaf


def read_graphs(tensors: Sequence[ref[Any]]) -> list[tuple[int, Any]] | None:
    """Tensors' ids and the operations that made them; None while another thread may change them.

    An operation itself does not change any more, and may be asked by any thread that refers to it.
    """
    base = sys.modules["torch"]._C.TensorBase
    return read_alone(tensors, (id,), (base.grad_fn.__get__,))


def number_of(operation: Any) -> int:
    """Torch numbers the operations of a thread in the order of their creation."""
    return _readers_of(operation, {}).number(operation)


def holds_operation(first: Any, after: int, until: int) -> bool:
    """Whether the graph of an operation holds one with a number above `after` and not above `until`.

    Looks at some 2000 operations, the oldest first: in a graph that grows with each step that leads back step
    by step, whatever a step adds to it.
    """
    readers: dict[int, _Readers] = {}
    seen = {id(first): first}
    waiting = [(number_of(first), id(first))]
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


def _readers_of(node: Any, known: dict[int, _Readers]) -> _Readers:
    """What reads an operation; `known` has it by the class's id, as long as operations of it are alive."""
    cls = type(node)
    found = known.get(id(cls))
    if found is None:
        found = known[id(cls)] = _make_readers(cls)
    return found


def _make_readers(cls: type) -> _Readers:
    # An operation written by the user is of a class of its own: only the library's accessors are used.
    number, inputs = _first(cls, "_sequence_nr"), _first(cls, "next_functions")
    return _Readers(
        number if type(number) is MethodDescriptorType else lambda _: _LEAF,
        inputs.__get__ if type(inputs) is GetSetDescriptorType else lambda _: (),
    )


def _first(cls: type, name: str) -> Any:
    return next((space[name] for base in layout_of(cls).mro if name in (space := namespace_of(base))), None)
