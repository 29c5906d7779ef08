"""Numpy arrays of objects: containers that are allocated for their whole length and filled later.

An item counts as filled unless it is None or the number 0, with which numpy fills a new array.
"""

from __future__ import annotations

import sys
from typing import Any

from heapwatch.measure.introspection.alone import collects_no_more
from heapwatch.measure.introspection.layout import layout_of

_COUNTED = 256  # items up to which each is looked at
_SAMPLES = 64
_MOST_LISTED = 1_000_000  # more items are not copied: that would stop the program for too long


def is_object_array(obj: Any) -> bool:
    """Whether this is a plain numpy array of objects; a subclass may answer with code of its own."""
    if layout_of(type(obj)).kind != "array":
        return False
    ndarray = sys.modules["numpy"].ndarray
    return type(obj) is ndarray and bool(obj.dtype.kind == "O")


def item_at(array: Any, at: int) -> Any:
    """The item at a position in the flat array; None if the array has become shorter."""
    try:
        return sys.modules["numpy"].ndarray.item(array, at)
    except IndexError:
        return None


def filled(array: Any) -> int:
    """Number of items that are filled.

    It is exact for a short array and for one that is filled from its beginning, and otherwise estimated from
    64 items.
    """
    size = int(array.size)
    if size <= _COUNTED:
        return sum(_is_filled(array, at) for at in range(size))
    positions = [at * (size - 1) // (_SAMPLES - 1) for at in range(_SAMPLES)]
    found = [_is_filled(array, at) for at in positions]
    if all(found):
        return size
    first = found.index(False)
    if any(found[first:]):
        return round(size * sum(found) / _SAMPLES)
    if not first:
        return 0
    low, high = positions[first - 1], positions[first]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_filled(array, middle) else (low, middle)
    return high


def filled_items(array: Any) -> list[Any] | None:
    """The filled items; None for more than a million of them, or if they cannot be read now."""
    items = object_items(array) if array.size <= _MOST_LISTED else None
    return None if items is None else [item for item in items if not _is_empty(item)]


def object_items(array: Any) -> list[Any] | None:
    """All items of an array of objects, in one call into C; None where that could be interrupted.

    A flat view has the address of the array: wrong after `resize(refcheck=False)` in another thread.
    """
    numpy = sys.modules["numpy"].ndarray
    if not collects_no_more(2):
        return None
    items: list[Any] = next(map(numpy.tolist, map(numpy.ravel, (array,))))
    return items


def _is_filled(array: Any, at: int) -> bool:
    return not _is_empty(item_at(array, at))


def _is_empty(item: Any) -> bool:
    return item is None or (type(item) is int and item == 0)
