"""Replay buffers: finds the items of declared buffers, and ring buffers in the attributes of any object."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.containers import array_bytes, shape_of
from heapwatch.measure.introspection.layout import classes, layout_of
from heapwatch.measure.sizing.deep_size import Size, deep_size
from heapwatch.measure.sizing.sampling import CONTAINERS, pick, positions

# Names of attributes in the buffers of libraries, and further ones that programs give them.
_CAPACITY = ("maxlen", "max_size", "buffer_size", "capacity", "max_len", "max_length", "memory_size")
CAPACITY_NAMES = (
    *_CAPACITY, "mem_size", "limit", "buffer_capacity", "max_buffer_size", "replay_size", "window", "maxsize"
)  # fmt: skip
# What such a bound counts, where it is not the items; and bounds of bytes.
_HELD_NAMES = (
    "currsize", "current_size", "cur_size", "current_bytes", "cur_bytes", "total_bytes", "used_bytes",
    "bytes_used", "current_weight",
)  # fmt: skip
_BYTES_NAMES = ("max_bytes", "maxbytes", "byte_limit", "bytes_limit", "capacity_bytes", "max_size_bytes")
# The largest number of a C int: how libraries say that there is no bound, as `multiprocessing.Queue()` does.
UNLIMITED = 2**31 - 1
_POSITION_NAMES = ("pos", "ptr", "position", "idx", "index", "mem_cntr", "cursor")
_FILLED_NAMES = (
    "size", "_len", "_size", "count", "num_in_buffer", "num_samples", "counter", "length", "n_stored"
)  # fmt: skip
_INNER = ("buffer", "memory", "_storage", "storage", "experiences", "transitions", "data")

_LEAST_RING_BYTES = 1_000_000
_BUDGET_SECONDS = 0.1  # half of it for what items share
_ATTACHED_SAMPLES = 32
_OBJECTS_AN_ITEM = 100
_DEEPEST = 4


@dataclass(frozen=True)
class Contents:
    """The items of a buffer and their container.

    Attributes:
        items: how many are stored.
        capacity: how many it may hold, None when unbounded.
        holder: the object whose bytes are the buffer's.
        allocated: whether memory for `capacity` items is allocated from the start.

    """

    items: int
    capacity: int | None
    holder: Any
    allocated: bool = False

    def size(self) -> tuple[Size, Size | None]:
        """Size of what is stored, and of the full buffer (None when unbounded, or empty and not allocated).

        Raises:
            OutOfTime, ContainerChanged: as `heapwatch.measure.sizing.deep_size.deep_size`.

        """
        whole = deep_size(self.holder, budget_seconds=_BUDGET_SECONDS)
        if self.capacity is None or self.capacity == 0:
            return whole, None
        filled = self.items / self.capacity
        if self.allocated:
            return whole.times(min(filled, 1.0)), whole
        return whole, whole.times(1 / filled) if filled else None


def contents_of(buffer: Any) -> Contents:
    """Find the items of `buffer`.

    Known are the built-in containers, arrays and tensors; ring buffers over preallocated arrays
    (Stable-Baselines3's with `pos` and `full`, Spinning Up's with `size` and `max_size`); TorchRL's buffers
    and storages; and objects that keep their items in an inner container or have a length.

    Raises:
        TypeError: it is none of these.

    """
    contents = _contents(buffer, 0)
    if contents is None:
        raise TypeError(
            f"a {type(buffer).__qualname__} is not a known kind of buffer: pass a sized container, an object"
            " that has a length or keeps one as .buffer or .memory, or the callables items= and nbytes="
        )
    return contents


def _contents(buffer: Any, depth: int) -> Contents | None:
    if isinstance(buffer, deque):
        return Contents(len(buffer), buffer.maxlen, buffer)
    if isinstance(buffer, CONTAINERS):
        return Contents(len(buffer), None, buffer)
    if _is_array(buffer):
        return Contents(buffer.shape[0] if buffer.ndim else 1, None, buffer)
    return _ring(buffer) or _inner(buffer, depth) or _sized(buffer)


def _ring(buffer: Any) -> Contents | None:
    """A ring buffer over preallocated arrays."""
    namespace = attributes_of(buffer) or {}
    fill = _fill_of(namespace)
    arrays = [] if fill is None else _arrays_of(fill, _with_inner(namespace))
    return Contents(fill.filled, fill.rows, arrays, allocated=True) if fill and arrays else None


def _inner(buffer: Any, depth: int) -> Contents | None:
    """A buffer that keeps its items in another object; the inner bound takes precedence."""
    for name in _INNER if depth < _DEEPEST else ():
        inner = _read(buffer, name)
        contents = _contents(inner, depth + 1) if inner is not None else None
        if contents is None:
            continue
        capacity = contents.capacity if contents.capacity is not None else _number(buffer, *_CAPACITY)
        if isinstance(contents.holder, CONTAINERS) or contents.allocated or not _has_length(buffer):
            return Contents(contents.items, capacity, contents.holder, contents.allocated)
        # An array as long as the capacity (TorchRL's tensor storages) is filled up to the buffer's length.
        return Contents(len(buffer), capacity, contents.holder, allocated=contents.items == capacity)
    return None


def _sized(buffer: Any) -> Contents | None:
    return Contents(len(buffer), _number(buffer, *_CAPACITY), buffer) if _has_length(buffer) else None


def _has_length(obj: Any) -> bool:
    return hasattr(type(obj), "__len__")


class Attached(NamedTuple):
    """Stored tensors that hold more than their data, estimated from a sample.

    `tensors` require gradients or are on an accelerator; `graphs` are those of them that keep the autograd
    graph they were computed with.
    """

    tensors: float
    graphs: float


def attached_tensors(contents: Contents) -> Attached | None:
    """The stored tensors that hold more than their data; None when torch is not in use."""
    if not classes("torch", "Tensor"):
        return None
    holder = contents.holder
    weight, items = 1.0, [[holder]]
    if isinstance(holder, CONTAINERS):
        sample = positions(len(holder), _ATTACHED_SAMPLES)
        weight, items = len(holder) / max(1, len(sample)), pick(holder, sample)
    tensors = [tensor for item in items for tensor in _tensors(item)]
    count = sum(tensor.requires_grad or tensor.device.type not in ("cpu", "meta") for tensor in tensors)
    graphs = sum(not tensor.is_leaf for tensor in tensors)
    return Attached(count * weight, graphs * weight)


def _tensors(stack: list[Any]) -> Iterator[Any]:
    tensor_class = classes("torch", "Tensor")
    visited: set[int] = set()
    while stack and len(visited) < _OBJECTS_AN_ITEM:
        obj = stack.pop()
        if id(obj) in visited or isinstance(obj, type):
            continue
        visited.add(id(obj))
        if issubclass(type(obj), tensor_class):
            yield obj
        elif not isinstance(obj, CONTAINERS) or len(obj) <= _OBJECTS_AN_ITEM:
            stack += gc.get_referents(obj)


def _with_inner(namespace: dict[str, Any]) -> list[Any]:
    """The values of an object's attributes, and those of the dicts among them."""
    values = list(namespace.values())
    return values + [inner for value in values if isinstance(value, dict) for inner in value.values()]


def _is_array(value: Any) -> bool:
    array_classes = (
        *classes("numpy", "ndarray"),
        *classes("torch", "Tensor"),
        *classes("tensordict", "TensorDictBase"),
    )
    return issubclass(type(value), array_classes)


def _read(obj: Any, name: str) -> Any:
    """An attribute, or None where it is missing or cannot be read."""
    try:
        return getattr(obj, name, None)
    except Exception:
        return None


def _number(obj: Any, *names: str) -> int | None:
    for name in names:
        value = _read(obj, name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


class Ring(NamedTuple):
    """The number of filled rows, the number of rows, and the bytes of all rows."""

    filled: int
    rows: int
    nbytes: int

    @property
    def held_bytes(self) -> float:
        """Bytes of the filled rows; memory that was never written is not resident."""
        return self.nbytes * min(1.0, self.filled / self.rows)


def ring_of(namespace: dict[str, Any]) -> Ring | None:
    """The ring buffer in an object's attributes; None if there is none.

    It needs arrays with the same number of rows, an attribute with that number, and a position or a count.
    """
    fill = _fill_of(namespace)
    if fill is None:
        return None
    arrays = _arrays_of(fill, list(namespace.values()))
    nbytes = sum(array_bytes(array, layout_of(type(array))) or 0 for array in arrays)
    return Ring(fill.filled, fill.rows, nbytes) if nbytes >= _LEAST_RING_BYTES else None


class _Fill(NamedTuple):
    """What a ring's attributes say: filled rows and all rows, each for so many environments."""

    filled: int
    rows: int
    environments: int


def _arrays_of(fill: _Fill, values: list[Any]) -> list[Any]:
    """The arrays among these values that have a place for each row, of one environment or of all."""
    lengths = (fill.rows, fill.rows // fill.environments)
    shapes = ((value, shape_of(value, layout_of(type(value)))) for value in values)
    return [value for value, shape in shapes if shape and shape[0] in lengths]


def _fill_of(namespace: dict[str, Any]) -> _Fill | None:
    numbers = {name: value for name, value in list(namespace.items()) if type(value) is int and value >= 0}
    rows = next((numbers[name] for name in CAPACITY_NAMES if numbers.get(name, 0) > 1), None)
    position = next((numbers[name] for name in _POSITION_NAMES if name in numbers), None)
    full = namespace.get("full")
    if type(full) is bool and position is not None:
        filled = rows if full else position
    else:
        filled = next((numbers[name] for name in _FILLED_NAMES if name in numbers), position)
    if rows is None or filled is None:
        return None
    environments = numbers.get("n_envs") or 1
    return _Fill(min(filled, rows) * environments, rows * environments, environments)


def capacity_beside(namespace: dict[str, Any], items: float, each: float | None = None) -> int | None:
    """The bound that an object declares for its items: the lowest one that is not exceeded.

    A bound may count something else than items: what an attribute such as `currsize` counts, or bytes.

    Args:
        namespace: the attributes of the object.
        items: how many it has now.
        each: bytes of an item; None if they are not known.

    """
    numbers = {
        plain_name(name): value
        for name, value in list(namespace.items())
        # Settings are written as 1e6, too.
        if (type(value) is int or (type(value) is float and value.is_integer())) and value < UNLIMITED
    }
    used = next((numbers[name] for name in _HELD_NAMES if numbers.get(name, 0) > 0), items)
    bounds = [items * numbers[name] / used for name in CAPACITY_NAMES if numbers.get(name, 0) >= max(used, 1)]
    if each:
        held_bytes = items * each
        bounds += [numbers[name] / each for name in _BYTES_NAMES if numbers.get(name, 0) >= held_bytes > 0]
    return int(min(bounds)) if bounds else None


def plain_name(name: object) -> str:
    """The name of an attribute without underscores and its class: `maxsize` of `_Cache__maxsize`."""
    return name.strip("_").rpartition("__")[2] if type(name) is str else ""
