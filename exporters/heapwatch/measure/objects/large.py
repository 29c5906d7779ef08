"""The largest single objects of the program.

It visits every object that the garbage collector tracks, and what these refer to and it does not track. This
takes about a second for a million objects and stops the program meanwhile, so it runs only on request.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from heapq import nlargest
from itertools import chain
from typing import Any, NamedTuple

from heapwatch.measure.introspection.containers import array_bytes
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.source_names import type_name
from heapwatch.measure.objects.tracked import tracked_slices
from heapwatch.measure.sizing.tensor_storage import array_data

_CONTAINERS = (list, dict, set, frozenset, tuple)  # of these their own bytes, without their items
_NOT_LISTED = (tuple, dict)  # the collector does not track a dict while all its items are untracked


# The identity of an object's memory, and its bytes; 0 if another object owns them.
Own = Callable[[Any], tuple[int, int]]


class Large(NamedTuple):
    """An object's class and its own bytes, for a container those of its table.

    Of tensors with the same storage, the one that uses most of it.
    """

    type: str
    nbytes: int


def large_objects(nbytes: float = 10e6, most: int = 20) -> list[Large]:
    """The `most` largest objects of at least `nbytes`, largest first; shared memory counts once."""
    found: dict[int, Large] = {}
    of_classes: dict[type, Own | None] = {}
    slices, _ = tracked_slices([0], sys.maxsize)
    tracked, in_tuples = slices.pop(0)
    try:
        for obj in chain(tracked, _others(tracked, in_tuples or [])):
            cls = type(obj)
            if cls not in of_classes:
                of_classes[cls] = _reader(cls)
            own = of_classes[cls]
            if own is None:
                continue
            key, size = own(obj)
            if size >= nbytes and (key not in found or size > found[key].nbytes):
                found[key] = Large(type_name(layout_of(cls)), size)
    finally:
        tracked.clear()  # it has frames that hold this function's, until Python 3.10
        if in_tuples:
            in_tuples.clear()
    return nlargest(most, found.values(), key=lambda large: large.nbytes)


def _others(tracked: list[Any], in_tuples: list[Any]) -> Iterator[Any]:
    """Tuples, and what the collector does not track, such as arrays, also in untracked dicts."""
    seen: set[int] = set()
    for parts in chain([in_tuples], (gc.get_referents(obj) for obj in tracked if obj is not tracked)):
        while parts:
            part = parts.pop()
            if gc.is_tracked(part) and type(part) is not tuple:
                continue
            yield part
            if type(part) in _NOT_LISTED and id(part) not in seen:
                seen.add(id(part))
                parts += gc.get_referents(part)


def _reader(cls: type) -> Own | None:
    """The function that reads the memory of an instance; None for classes whose instances own none."""
    if cls in _CONTAINERS:
        return lambda obj: (id(obj), obj.__sizeof__())
    kind = layout_of(cls).kind
    return {"array": _array, "tensor": _tensor, "text": _raw, "raw": _raw}.get(kind)


def _array(array: Any) -> tuple[int, int]:
    key, size = array_data(array)
    return key or id(array), size


def _tensor(tensor: Any) -> tuple[int, int]:
    size = array_bytes(tensor, layout_of(type(tensor))) or 0
    try:
        plain = size and tensor.layout is sys.modules["torch"].strided
        return sys.modules["torch"]._C._storage_address(tensor) if plain else id(tensor), size
    except RuntimeError:  # a wrapper that `torch.func` or `torch.compile` makes has no storage
        return id(tensor), size


def _raw(text: Any) -> tuple[int, int]:
    return id(text), array_bytes(text, layout_of(type(text))) or 0
