"""How an object of each kind is looked into, and the bytes of the object itself."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal

from heapwatch.measure.sampling import CONTAINERS
from heapwatch.measure.tensor_storage import TensorMemory, classes

_GC_HEADER = 16
HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT, CPython 3.11 and later
_VALUES_APART = (3, 11) <= sys.version_info < (3, 13)


# How an object is looked into. Names, not an Enum: they are compared for each object.
Kind = Literal["atom", "opaque", "function", "container", "array", "tensor", "storage", "memory", "object"]

_OPAQUE = (type, ModuleType, CodeType, FrameType, BuiltinFunctionType, GetSetDescriptorType)


def kind_of(cls: type) -> Kind:
    """How instances of `cls` are looked into."""
    if cls is TensorMemory:
        return "memory"
    if issubclass(cls, _OPAQUE):
        return "opaque"
    if cls is FunctionType:
        return "function"
    if issubclass(cls, CONTAINERS):
        return "container"
    if issubclass(cls, classes("numpy", "ndarray")):
        return "array"
    if issubclass(cls, classes("torch", "Tensor")):
        return "tensor"
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return "storage"
    return "object" if cls.__flags__ & HAS_GC or type(cls.__sizeof__) is FunctionType else "atom"


def own_bytes(obj: object, cls: type) -> int:
    """Bytes of one object without what it refers to; a `__sizeof__` written in Python is not run."""
    if type(cls.__sizeof__) is FunctionType:
        return object.__sizeof__(obj) + _GC_HEADER
    return sys.getsizeof(obj)


def values_bytes(cls: type, parts: list[Any]) -> int:
    """Bytes of an instance's attribute values where CPython 3.11 and 3.12 keep them apart from any dict.

    They are an array with one place more than the attributes, and a byte for each before it (`new_values` in
    CPython's Objects/dictobject.c); `parts` holds the class beside the values.
    """
    if not _VALUES_APART or not cls.__flags__ & _MANAGED_DICT or any(type(part) is dict for part in parts):
        return 0
    return 8 * len(parts) + (len(parts) + 2 + 7) // 8 * 8
