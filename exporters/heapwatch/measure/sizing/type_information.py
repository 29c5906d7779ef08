"""How an object of each kind is inspected, the bytes of the object itself, and what may hold more."""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal

from heapwatch.measure.introspection.layout import (
    Layout,
    classes,
    flags_of,
    keeps_values_apart,
    layout_of,
    namespace_of,
)
from heapwatch.measure.sizing.foreign import is_device_array, reader_of
from heapwatch.measure.sizing.memory import MemoryBlock, Unread
from heapwatch.measure.sizing.sampling import CONTAINERS

_GC_HEADER = 16
HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
_INLINE_VALUES = 1 << 2  # Py_TPFLAGS_INLINE_VALUES, CPython 3.13 and later
_MOST_INLINE = 29

# How an object is looked into. Names, not an Enum: they are compared for each object.
Kind = Literal[
    "atom", "opaque", "function", "container", "array", "tensor", "storage", "memory", "unread", "foreign",
    "native", "object", "frame",
]  # fmt: skip

_OPAQUE = (type, ModuleType, CodeType, GetSetDescriptorType)
_KNOWN_LIBRARIES = ("torch", "tensordict", "torchao", "torchrl")
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


def kind_of(cls: type) -> Kind:
    """How instances of `cls` are inspected."""
    if cls is MemoryBlock:
        return "memory"
    if cls is Unread:
        return "unread"
    if issubclass(cls, _OPAQUE):
        return "opaque"
    if cls is FunctionType:
        return "function"
    if cls is FrameType:
        return "frame"
    if issubclass(cls, CONTAINERS):
        return "container"
    layout = layout_of(cls)
    if layout.kind == "array":
        return "array"
    # A class of the program's own sees all that its tensors are asked.
    if layout.kind == "tensor" and layout.module.partition(".")[0] in _KNOWN_LIBRARIES:
        return "tensor"
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return "storage"
    if layout.kind not in ("atom", "text", "raw") and reader_of(layout.mro) is not None:
        return "foreign"
    if layout.kind in ("object", "tensor", "programs") and (
        holds_memory(layout) or is_device_array(layout.mro)
    ):
        return "native"
    return "object" if flags_of(cls) & HAS_GC or layout_of(cls).sizer == "python" else "atom"


def own_bytes(obj: object, cls: type) -> int:
    """Bytes of one object without what it refers to.

    A `__sizeof__` written in Python is not run, nor that of a library, which may be changing the object.
    """
    sizer = layout_of(cls).sizer
    if sizer == "interpreter":
        return sys.getsizeof(obj)
    header = _GC_HEADER if sizer == "python" or flags_of(cls) & HAS_GC else 0
    return object.__sizeof__(obj) + header


def values_bytes(cls: type, parts: list[Any]) -> int:
    """Bytes of an instance's attribute values where CPython, from 3.11 on, keeps them apart from any dict.

    They are an array with one place more than the attributes, and a byte for each that keeps their order
    (`new_values` in CPython's Objects/dictobject.c). From 3.13 on it is a part of the instance that
    `sys.getsizeof` does not count (`_PyInlineValuesSize` in Include/internal/pycore_dict.h). It stays there
    when the values move to a dict. `parts` holds the class beside the values, or beside the dict.
    """
    if not keeps_values_apart(cls):
        return 0
    made = next((part for part in parts if type(part) is dict), None) if len(parts) <= 2 else None
    if sys.version_info < (3, 13):
        return 0 if made is not None else 8 * len(parts) + (len(parts) + 2 + 7) // 8 * 8
    if not flags_of(cls) & _INLINE_VALUES:
        return 0
    places = min(_MOST_INLINE, len(parts) if made is None else len(made) + 1)
    return 8 * (places + 1) + (places + 7) // 8 * 8


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
