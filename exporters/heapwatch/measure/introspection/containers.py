"""Reads lengths, bytes and items of containers, arrays and texts without running code of the program.

An item of an array of objects counts as filled unless it is None or the number 0, with which numpy fills a
new array.
"""

from __future__ import annotations

import gc
import io
import sys
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from heapwatch.measure.introspection.exclusive_reads import collects_no_more
from heapwatch.measure.introspection.layout import CACHE_TYPE, Layout, layout_of

_ATTEMPTS = 3
_COUNTED = 256  # items up to which each is looked at
_MOST_LISTED = 1_000_000  # more items are not copied: that would stop the program for too long
_DIMENSIONS_INSIDE = 5  # the sizes of more lie apart from the tensor (c10's SizesAndStrides.h)
_DEEPEST_VIEW = 8
_MOST_TABLE_PARTS = 200
_TABLE_PARTS = frozenset(("list", "tuple", "object", "array"))

_maxlen: Callable[[Any], int | None] = deque.__dict__["maxlen"].__get__
_item_size: Callable[[Any], int] = array.__dict__["itemsize"].__get__


def length_of(obj: Any, layout: Layout) -> int | None:
    """Items of a container, characters of a text, elements of an array; None for anything else."""
    return _read(_LENGTHS, obj, layout)


def _read(readers: Mapping[str, Callable[[Any], int | None]], obj: Any, layout: Layout) -> int | None:
    reader = readers.get(layout.kind)
    try:
        return None if reader is None else reader(obj)
    except Exception:  # an array library's own state may be half built
        return None


def items_in(obj: Any, layout: Layout) -> int | None:
    """The same as `length_of`, but of an array of objects only the filled items."""
    return filled_count(obj) if is_object_array(obj) else length_of(obj, layout)


def capacity_of(obj: Any, layout: Layout) -> int | None:
    """The bound of a container: a deque's `maxlen` or a cache's `maxsize`."""
    if layout.kind == "deque":
        return _maxlen(obj)
    if layout.kind == "cache":
        maxsize: int | None = CACHE_TYPE.cache_info(obj).maxsize
        return maxsize
    return None


def array_bytes(obj: Any, layout: Layout) -> int | None:
    """Bytes of a tensor or a text, and what an array keeps alive: of a view its base. None for others."""
    return _read(_BYTES, obj, layout)


def shape_of(obj: Any, layout: Layout) -> tuple[int, ...] | None:
    """The shape of an array or a plain tensor; None for others and for a tensor of many dimensions."""
    if layout.kind == "array":
        return tuple(sys.modules["numpy"].ndarray.shape.__get__(obj))
    plain = layout.kind == "tensor" and is_plain_tensor(obj)
    return tuple(obj.shape) if plain and obj.dim() <= _DIMENSIONS_INSIDE else None


def first_items(
    container: Any, most: int, *ways: Callable[[Any], Iterable[Any]], start: int = 0
) -> list[Any]:
    """At most `most` items after the first `start` ones.

    `ways` are functions of C that lead to the iterator, each called with the result of the one before:
    `dict.values, reversed`. One call makes the iterator and uses it, since another thread could change the
    container between two. Only a finalizer can, which the garbage collector calls meanwhile.

    Raises:
        RuntimeError: the container kept changing.

    """
    for _ in range(_ATTEMPTS):
        with suppress(RuntimeError):
            return _first_items(container, most, ways, start)
    return _first_items(container, most, ways, start)


def _first_items(container: Any, most: int, ways: Iterable[Any], start: int) -> list[Any]:
    views: Iterable[Any] = (container,)
    for step in ways:
        views = map(step, views)
    return list(chain.from_iterable(map(islice, views, (start,), (start + most,))))


def is_object_array(obj: Any) -> bool:
    """Whether this is a plain numpy array of objects; a subclass may answer with code of its own."""
    if layout_of(type(obj)).kind != "array":
        return False
    return type(obj) is sys.modules["numpy"].ndarray and bool(obj.dtype.kind == "O")


def item_at(array: Any, position: int) -> Any:
    """The item at a position in the flat array; None if the array has become shorter."""
    try:
        return sys.modules["numpy"].ndarray.item(array, position)
    except IndexError:
        return None


def filled_count(array: Any) -> int:
    """Number of items that are filled: exact in a short array, else of one that is filled from its beginning.

    So are replay memories.
    """
    size = int(array.size)
    if size <= _COUNTED:
        return sum(_is_filled(item_at(array, at)) for at in range(size))
    return bisect_left(range(size), True, key=lambda at: not _is_filled(item_at(array, at)))


def filled_items(array: Any) -> list[Any] | None:
    """The filled items; None for more than a million of them, or if they cannot be read now."""
    items = object_items(array) if array.size <= _MOST_LISTED else None
    return None if items is None else list(filter(_is_filled, items))


def object_items(array: Any) -> list[Any] | None:
    """All items of an array of objects, in one call into C; None where that could be interrupted.

    A flat view has the address of the array: wrong after `resize(refcheck=False)` in another thread.
    """
    numpy = sys.modules["numpy"].ndarray
    if not collects_no_more(2):
        return None
    items: list[Any] = next(map(numpy.tolist, map(numpy.ravel, (array,))))
    return items


def _is_filled(item: Any) -> bool:
    return item is not None and not (type(item) is int and item == 0)


def array_owner(array: Any) -> Any:
    """The array whose memory an array shows; itself if it is no view of another."""
    ndarray = sys.modules["numpy"].ndarray
    for _ in range(_DEEPEST_VIEW):
        owner = ndarray.base.__get__(array)
        if owner is None or layout_of(type(owner)).kind != "array":
            break
        array = owner
    return array


def _array_bytes(obj: Any) -> int:
    return int(sys.modules["numpy"].ndarray.nbytes.__get__(array_owner(obj)))


def is_plain_tensor(obj: Any) -> bool:
    """Whether this is no subclass, which may answer with code of its own."""
    torch = sys.modules["torch"]
    return type(obj) is torch.Tensor or type(obj) is torch.nn.Parameter


def _table(obj: Any) -> tuple[int, int]:
    """Rows and bytes of a pandas object, from the arrays of its blocks."""
    rows = nbytes = 0
    stack, visited = [layout_of(type(obj)).namespace(obj).get("_mgr")], 0  # type: ignore[misc]
    while stack and visited < _MOST_TABLE_PARTS:
        part = stack.pop()
        visited += 1
        if layout_of(type(part)).kind == "array":
            shape = sys.modules["numpy"].ndarray.shape.__get__(part)
            rows = max(rows, int(shape[-1]) if shape else 0)
            nbytes += _array_bytes(part)
        elif part is not None:
            # An index remembers its views as weak references, hundreds of them: those lead nowhere.
            stack += [
                referent
                for referent in gc.get_referents(part)
                if layout_of(type(referent)).kind in _TABLE_PARTS
            ]
    return rows, nbytes


_TEXTS = (str, bytes, bytearray, io.BytesIO, io.StringIO)


def _text_type(obj: Any) -> Any:
    return next(base for base in _TEXTS if issubclass(type(obj), base))


def _text_bytes(obj: Any) -> int:
    kind = _text_type(obj)
    # A stream of text does not tell its memory: a byte for each character written so far, at least.
    return int(io.StringIO.tell(obj) if kind is io.StringIO else kind.__sizeof__(obj))


def _text_length(obj: Any) -> int:
    kind = _text_type(obj)
    return _text_bytes(obj) if kind is io.StringIO or kind is io.BytesIO else int(kind.__len__(obj))


_LENGTHS: dict[str, Callable[[Any], int | None]] = {
    "list": list.__len__,
    "tuple": tuple.__len__,
    "deque": deque.__len__,
    "dict": dict.__len__,
    "set": lambda obj: set.__len__(obj) if issubclass(type(obj), set) else frozenset.__len__(obj),
    "text": _text_length,
    "raw": array.__len__,
    "array": lambda obj: int(sys.modules["numpy"].ndarray.size.__get__(obj)),
    "tensor": lambda obj: int(obj.numel()) if is_plain_tensor(obj) else None,
    "frame_table": lambda obj: _table(obj)[0],
    "cache": lambda obj: int(CACHE_TYPE.cache_info(obj).currsize),
    "programs": lambda obj: int(type(obj)._cache_size(obj)),  # what jax.jit compiled: one for each signature
}
_BYTES: dict[str, Callable[[Any], int | None]] = {
    "array": _array_bytes,
    "tensor": lambda obj: int(obj.numel() * obj.element_size()) if is_plain_tensor(obj) else None,
    "frame_table": lambda obj: _table(obj)[1],
    "text": _text_bytes,
    "raw": lambda obj: int(array.buffer_info(obj)[1] * _item_size(obj)),
}
