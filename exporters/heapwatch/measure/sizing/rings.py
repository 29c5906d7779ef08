"""Ring buffers over arrays that were allocated for their whole capacity from the start."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.reading import array_bytes, shape_of

CAPACITY_NAMES = (
    "maxlen", "max_size", "buffer_size", "capacity", "max_len", "max_length", "memory_size", "mem_size",
    "limit",
    "buffer_capacity", "max_buffer_size", "replay_size", "window", "maxsize",
)  # fmt: skip
_POSITIONS = ("pos", "ptr", "position", "idx", "index", "mem_cntr", "cursor")
_FILLED = ("size", "_len", "_size", "count", "num_in_buffer", "num_samples", "counter", "length", "n_stored")
_LEAST_BYTES = 1_000_000


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
    numbers = {name: value for name, value in list(namespace.items()) if type(value) is int and value >= 0}
    rows = next((numbers[name] for name in CAPACITY_NAMES if numbers.get(name, 0) > 1), None)
    filled = _filled(namespace, numbers, rows) if rows else None
    if rows is None or filled is None:
        return None
    width = numbers.get("n_envs") or 1
    nbytes = 0
    for value in list(namespace.values()):
        layout = layout_of(type(value))
        if layout.kind in ("array", "tensor") and (shape_of(value, layout) or (0,))[0] in (
            rows,
            rows * width,
        ):
            nbytes += array_bytes(value, layout) or 0
    return Ring(filled * width, rows * width, nbytes) if nbytes >= _LEAST_BYTES else None


def capacity_beside(namespace: dict[str, Any], items: float) -> int | None:
    """The bound that an object declares for its items: the lowest one that is not exceeded."""
    found = [
        int(value)
        for name, value in list(namespace.items())
        if type(name) is str and name.strip("_") in CAPACITY_NAMES
        # Settings are written as 1e6, too.
        if type(value) is int or (type(value) is float and value.is_integer())
        if value >= items
    ]
    return min(found, default=None)


def _filled(namespace: dict[str, Any], numbers: dict[str, int], rows: int) -> int | None:
    position = next((numbers[name] for name in _POSITIONS if name in numbers), None)
    full = namespace.get("full")
    if type(full) is bool and position is not None:
        return rows if full else position
    count = next((numbers[name] for name in _FILLED if name in numbers), position)
    return None if count is None or not math.isfinite(count) else min(count, rows)
