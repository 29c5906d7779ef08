"""Autograd graphs: how many operations a tensor's history holds."""

from __future__ import annotations

import sys
from types import GetSetDescriptorType
from typing import Any

from heapwatch.measure.layout import layout_of, namespace_of

MOST_NODES = 1000


def graph_of(tensor: Any) -> Any:
    """The operation that made a tensor; None where it keeps none, or is of a class of the program's own."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return None
    return tensor.grad_fn


def graph_size(tensor: Any) -> int | None:
    """Operations in a tensor's history, `MOST_NODES` at most; None where it keeps no history."""
    first = graph_of(tensor)
    if first is None:
        return None
    seen = {id(first): first}
    stack = [first]
    while stack and len(seen) < MOST_NODES:
        for node, _ in _inputs(stack.pop()):
            if node is not None and id(node) not in seen:
                seen[id(node)] = node
                stack.append(node)
    return len(seen)


def _inputs(node: Any) -> tuple[tuple[Any, int], ...]:
    # An operation written by the user is of a class of its own: only the library's accessor is used.
    for base in layout_of(type(node)).mro:
        reader = namespace_of(base).get("next_functions")
        if reader is not None:
            return tuple(reader.__get__(node)) if type(reader) is GetSetDescriptorType else ()
    return ()
