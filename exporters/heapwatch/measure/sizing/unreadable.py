"""Whether instances of a class may hold memory that cannot be read from Python."""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections.abc import Callable

from heapwatch.measure.introspection.layout import Layout, layout_of, namespace_of

_base_of: Callable[[type], type | None] = type.__dict__["__base__"].__get__
_size_of: Callable[[type], int] = type.__dict__["__basicsize__"].__get__
_dict_at: Callable[[type], int] = type.__dict__["__dictoffset__"].__get__
_weakrefs_at: Callable[[type], int] = type.__dict__["__weakrefoffset__"].__get__
_POINTER = 8

# Types of the interpreter itself: what they hold is in `sys.getsizeof`, or visible as objects.
_OF_THE_INTERPRETER = frozenset(
    id(cls)
    for cls in (
        *vars(builtins).values(),
        *vars(types).values(),
        *map(type, (iter([]), iter(()), iter({}), iter(set()), iter(""), iter(b""), iter(range(0)))),
        *map(type, (reversed([]), {}.keys(), {}.values(), {}.items(), iter({}.values()), iter({}.items()))),
        *map(type, (iter(int, 0), memoryview(b""), gc.get_referents(memoryview(b""))[0])),
    )
    if isinstance(cls, type)
) - {id(getattr(types, "CapsuleType", None))}
_FOREIGN_OF_THE_STANDARD_LIBRARY = frozenset(
    ("_sqlite3", "sqlite3", "zlib", "_lzma", "lzma", "_bz2", "bz2", "_ssl", "pyexpat", "_tkinter", "_ctypes")
)
# Types of these libraries that hold much have readers; the rest are descriptions: dtypes, streams, devices.
_PLAIN_LIBRARIES = ("numpy", "pandas", "heapwatch")
_PLAIN_TYPES = frozenset(
    (
        "torch.dtype", "torch.device", "torch.layout", "torch.memory_format", "torch.finfo", "torch.iinfo",
        "torch._C.Generator", "torch.Stream", "torch.Event", "torch._C.StorageBase",
        "pyarrow.lib._Weakrefable", "pyarrow.lib.DataType", "pyarrow.lib.Field", "pyarrow.lib.Schema",
        "jax.jaxlib._jax.Array", "jaxlib._jax.Device",
        "jaxlib._jax.Sharding", "jaxlib._jax.SingleDeviceSharding",
        "jaxlib._jax.NamedSharding", "jaxlib._jax.DeviceList",
    )
)  # fmt: skip


def holds_memory(layout: Layout) -> bool:
    """Whether a base class is written in another language and is not known to hold almost nothing.

    The instances of such a class have space besides their Python attributes.
    """
    return any(_native_bytes(base) > 0 and not _is_plain(base) for base in layout.mro)


def _native_bytes(cls: type) -> int:
    """Bytes that a class adds to its instances besides attributes, their dict, and weak references."""
    base = _base_of(cls)
    if base is None:
        return 0
    own = _size_of(cls) - _size_of(base)
    own -= _POINTER * sum(type(value) is types.MemberDescriptorType for value in namespace_of(cls).values())
    own -= _POINTER * (_dict_at(cls) > 0 >= _dict_at(base))
    own -= _POINTER * (_weakrefs_at(cls) > 0 >= _weakrefs_at(base))
    return own


def _is_plain(cls: type) -> bool:
    layout = layout_of(cls)
    if id(cls) in _OF_THE_INTERPRETER:
        return True
    library = layout.module.partition(".")[0]
    if library in sys.stdlib_module_names and library != "builtins":
        return library not in _FOREIGN_OF_THE_STANDARD_LIBRARY
    return library in _PLAIN_LIBRARIES or f"{layout.module}.{layout.name}" in _PLAIN_TYPES
