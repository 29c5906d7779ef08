"""How an object of each kind is inspected, and the bytes of the object itself."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal

from heapwatch.measure.introspection.layout import classes, flags_of, keeps_values_apart, layout_of
from heapwatch.measure.sizing.foreign import is_device_array, reader_of
from heapwatch.measure.sizing.memory import MemoryBlock, Unread
from heapwatch.measure.sizing.sampling import CONTAINERS
from heapwatch.measure.sizing.unreadable import holds_memory

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
