"""Measures the bytes of a growing container, and finds the properties of its newest items."""

from __future__ import annotations

import gc
import sys
from collections import deque
from contextlib import suppress
from types import FunctionType
from typing import Any, NamedTuple

from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.measure.introspection.containers import (
    array_bytes,
    filled_items,
    first_items,
    is_object_array,
    items_in,
)
from heapwatch.measure.introspection.exclusive_reads import Ask
from heapwatch.measure.introspection.layout import Layout, layout_of
from heapwatch.measure.introspection.names import qualified_type_name, type_of
from heapwatch.measure.introspection.reading import parts
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.deep_size import Size, deep_size, size_by_items
from heapwatch.measure.sizing.sampling import ContainerChanged, same_samples
from heapwatch.measure.sizing.tensor_storage import Storages, array_base, has_graph, memory_key
from heapwatch.measure.sizing.traversal import OutOfTime

_BUDGET_SECONDS = 0.02
_RETRY_SECONDS = 20.0
_MOST_DOUBLINGS = 6
_LONGER = 5  # time for the next try after a failure, as a multiple of the usual: it takes as much as it needs
_MOST_INSPECTED = 400  # objects visited in an item: a wrapped environment has hundreds before its simulator
_NEWEST = 3
_DEEPEST_NAMED = 1  # steps from an item to what a suggestion may speak of
_PLAIN = ("list", "tuple", "deque", "dict", "set", "text", "raw", "array", "atom", "frame_table")


class ItemTraits(NamedTuple):
    """Properties of a container's newest items.

    Attributes:
        item_type: name of their class.
        ids: ids of the items and keys of their memory, to find containers that hold the same.
        opaque: whether an item holds memory that cannot be measured, such as an autograd graph or an object
            of an extension.
        graph: whether an item is, or contains, a tensor with its autograd graph.
        view: of an item that is, or contains, a view which alone keeps a larger array alive: the bytes that
            it uses, and those of the array. None without one.
        classes: qualified names of the classes of an item and of what it refers to itself, with their bases.

    """

    item_type: str
    ids: frozenset[int]
    opaque: bool
    graph: bool
    view: tuple[int, int] | None
    classes: frozenset[str]


NO_TRAITS = ItemTraits("", frozenset(), False, False, None, frozenset())


def weigh(
    container: KnownContainer,
    inventory: Inventory,
    now: float,
    budget_seconds: float = _BUDGET_SECONDS,
    ask: Ask = lambda read: None,
) -> bool:
    """Measure the bytes of all containers at a path within this CPU time, and add them as a reading.

    Returns True if storages of tensors could not be read; then only the part in use counts.
    """
    if container.kind in ("ring", "graph") or container.in_bytes:
        return False
    storages = Storages()
    with same_samples() as repeat:
        nbytes = _bytes_of(container, inventory, budget_seconds, storages)
        unread = storages.wanted and not storages.read(ask)
        if storages.known:
            repeat()
            nbytes = _bytes_of(container, inventory, budget_seconds, storages) or nbytes
    if nbytes is None:
        container.weighing_due = now + _RETRY_SECONDS * 2 ** min(container.weigh_failures, _MOST_DOUBLINGS)
        container.weigh_failures += 1
    else:
        container.held.add(now, nbytes)
        container.weighed_items = container.items.last or 0.0
    return unread


def _bytes_of(
    container: KnownContainer, inventory: Inventory, budget_seconds: float, storages: Storages
) -> float | None:
    """The bytes of all containers at a path; None if there was no time for one of them."""
    anchors = [key for key, path in inventory.anchors.items() if not is_inside(path, container.path)]
    total, shared, count = 0.0, 0.0, 0
    until = own_time() + budget_seconds * (_LONGER if container.weigh_failures else 1)
    for obj, layout in inventory.places_of(container):
        seconds = until - own_time()
        if seconds <= 0:
            break
        try:
            size = _size_of(obj, layout, seconds, anchors, storages, is_large=container.weigh_failures > 0)
        except (OutOfTime, ContainerChanged, RuntimeError):
            continue
        # Once Ray is shut down, nobody knows what its references kept until then.
        if size is not None and not (container.shared_share and size.unread and not size.shared_bytes):
            total += size.held_bytes
            shared += size.shared_bytes
            count += 1
    if total:
        container.shared_share = shared / total
    return total / count * container.multiplicity if count else None


def _size_of(
    obj: Any, layout: Layout, seconds: float, elsewhere: list[int], storages: Storages, *, is_large: bool
) -> Size | None:
    """The size of a container; of one that is too large to measure in time, estimated by its newest items."""
    options: dict[str, Any] = {"budget_seconds": seconds, "elsewhere": elsewhere, "storages": storages}
    # Without the last item, which may be an episode that has just begun.
    items = _newest(obj, layout)[:-1] if is_large else []
    if len(items) > 1:
        return size_by_items(items, items_in(obj, layout) or 0, **options)
    content = filled_items(obj) if is_object_array(obj) else obj
    return None if content is None else deep_size(content, **options)


def traits_of(container: KnownContainer, inventory: Inventory) -> ItemTraits:
    """Find the properties of the newest items of a container."""
    if container.kind == "graph":
        return ItemTraits("autograd history", frozenset(), True, True, None, frozenset())
    if container.kind == "programs":
        return ItemTraits("compiled program", frozenset(), True, False, None, frozenset())
    newest = newest_of(container, inventory)
    return _inspect(newest, container, inventory) if newest else NO_TRAITS


def newest_of(container: KnownContainer, inventory: Inventory) -> list[Any]:
    """The newest items of a container, the newest last; empty if unknown. The caller must not keep them."""
    for obj, layout in inventory.places_of(container):
        with suppress(RuntimeError):
            newest = _newest(obj, layout)
            if newest:
                return newest
    return []


def _is_of_method(cache: Any) -> bool:
    """Whether a `functools` cache is that of a method: it keeps the objects that the method was called on."""
    function = getattr(cache, "__wrapped__", None)
    return type(function) is FunctionType and function.__code__.co_varnames[:1] == ("self",)


def _newest_entries(cache: Any) -> list[tuple[Any, Any]]:
    # The largest dict is the cache; another may hold the function's attributes.
    entries = max((part for part in gc.get_referents(cache) if type(part) is dict), key=len, default={})
    return first_items(entries, _NEWEST, dict.items, reversed)[::-1]


def _first_object(key: Any) -> Any:
    """The first argument with attributes; None if there is none."""
    arguments = key if type(key) is tuple else (key,)
    return next((one for one in arguments if layout_of(type(one)).kind == "object"), None)


def _newest(obj: Any, layout: Layout) -> list[Any]:
    if layout.kind == "cache":
        of_method = _is_of_method(obj)
        return [_first_object(key) if of_method else value for key, value in _newest_entries(obj)]
    if layout.kind == "dict":
        return first_items(obj, _NEWEST, dict.values, reversed)[::-1]
    if layout.kind in ("tensor", "text", "raw", "frame_table", "programs"):
        return []
    return [part for _, part in list(parts(obj, layout, 8))[-_NEWEST:]]


def _inspect(newest: list[Any], container: KnownContainer, inventory: Inventory) -> ItemTraits:
    item_type = type_of(newest[-1])
    items = [(item, layout_of(type(item))) for item in newest]
    ids = {id(item) for item, layout in items if layout.kind != "atom"}
    ids |= {memory_key(item, layout) for item, layout in items} - {0}
    opaque = graph = False
    views: dict[int, tuple[int, int]] = {}  # by the id of the array that they keep
    names: set[str] = set()
    pending: deque[tuple[Any, int]] = deque([(newest[-1], 0)])
    visited: set[int] = set()
    while pending and len(visited) < _MOST_INSPECTED:
        obj, depth = pending.popleft()
        if id(obj) in visited:
            continue
        visited.add(id(obj))
        if not is_inside(inventory.anchors.get(id(obj), container.path), container.path):
            continue  # the item only refers to it
        layout = layout_of(type(obj))
        if layout.kind in ("atom", "class", "module", "text"):
            continue
        if depth <= _DEEPEST_NAMED:
            names.update(qualified_type_name(layout_of(base)) for base in layout.mro)
        if layout.kind == "tensor":
            graph = graph or has_graph(obj)
        elif layout.kind == "array":
            view = _small_view(obj, layout)
            if view is not None:
                views.setdefault(id(array_base(obj)), view)
        elif layout.kind == "object" and layout.namespace is None and not layout.slots:
            opaque = True
        if layout.kind not in ("array", "tensor"):
            pending += ((part, depth + 1) for part in gc.get_referents(obj)[:20])
    view = next((view for kept, view in views.items() if kept not in visited), None)
    return ItemTraits(item_type, frozenset(ids), opaque or graph, graph, view, frozenset(names))


def is_inside(path: str, of: str) -> bool:
    """Whether a path is that of an object or of a part of it."""
    return path == of or path.startswith((f"{of}.", f"{of}["))


def _small_view(array: Any, layout: Layout) -> tuple[int, int] | None:
    """The bytes of a view, and of the much larger array that it keeps; None for any other array."""
    used, whole = int(sys.modules["numpy"].ndarray.nbytes.__get__(array)), array_bytes(array, layout) or 0
    return (used, whole) if whole > 2 * used + 4096 else None
