"""How an object of each kind is looked into, and the bytes of the object itself."""

from __future__ import annotations

import sys
from enum import Enum, auto
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any

from heapwatch.storages import TensorMemory, classes
from heapwatch.strata import CONTAINERS

_GC_HEADER = 16
HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT, CPython 3.11 and later
_VALUES_APART = (3, 11) <= sys.version_info < (3, 13)


class Kind(Enum):
    """How an object is looked into."""

    ATOM = auto()
    OPAQUE = auto()
    FUNCTION = auto()
    CONTAINER = auto()
    ARRAY = auto()
    TENSOR = auto()
    STORAGE = auto()
    MEMORY = auto()
    OBJECT = auto()


_ATOMS = (int, float, complex, str, bytes, bytearray, type(None), type(Ellipsis), range)
_OPAQUE = (type, ModuleType, CodeType, FrameType, BuiltinFunctionType, GetSetDescriptorType)


def kind_of(cls: type) -> Kind:
    """How instances of `cls` are looked into."""
    if cls is TensorMemory:
        return Kind.MEMORY
    if issubclass(cls, _OPAQUE):
        return Kind.OPAQUE
    if cls is FunctionType:
        return Kind.FUNCTION
    if issubclass(cls, CONTAINERS):
        return Kind.CONTAINER
    if issubclass(cls, classes("numpy", "ndarray")):
        return Kind.ARRAY
    if issubclass(cls, classes("torch", "Tensor")):
        return Kind.TENSOR
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return Kind.STORAGE
    if issubclass(cls, _ATOMS) and not cls.__flags__ & HAS_GC:
        return Kind.ATOM
    return Kind.OBJECT if cls.__flags__ & HAS_GC else Kind.ATOM


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
