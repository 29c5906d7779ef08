"""How an object of each kind is inspected, and the bytes of the object itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal

from heapwatch.measure.layout import Layout, layout_of, namespace_of
from heapwatch.measure.sampling import CONTAINERS
from heapwatch.measure.tensor_storage import TensorMemory, classes

_GC_HEADER = 16
HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT, CPython 3.11 and later
_VALUES_APART = (3, 11) <= sys.version_info < (3, 13)


# How an object is looked into. Names, not an Enum: they are compared for each object.
Kind = Literal["atom", "opaque", "function", "container", "array", "tensor", "storage", "memory", "object"]

_OPAQUE = (type, ModuleType, CodeType, FrameType, BuiltinFunctionType, GetSetDescriptorType)


flags_of: Callable[[type], int] = type.__dict__["__flags__"].__get__
_READ_OF_ARRAYS = ("base", "dtype", "flags", "nbytes", "ndim", "ravel", "__array_finalize__")
_KNOWN_LIBRARIES = ("numpy", "torch", "tensordict", "torchao", "torchrl")


def kind_of(cls: type) -> Kind:
    """How instances of `cls` are inspected."""
    if cls is TensorMemory:
        return "memory"
    if issubclass(cls, _OPAQUE):
        return "opaque"
    if cls is FunctionType:
        return "function"
    if issubclass(cls, CONTAINERS):
        return "container"
    layout = layout_of(cls)
    if layout.kind == "array" and not _overrides(layout, classes("numpy", "ndarray"), _READ_OF_ARRAYS):
        return "array"
    if layout.kind == "tensor" and not _overrides(layout, classes("torch", "Tensor"), ()):
        return "tensor"
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return "storage"
    return "object" if flags_of(cls) & HAS_GC or _own_sizeof(cls) else "atom"


def _overrides(layout: Layout, known: tuple[type, ...], names: tuple[str, ...]) -> bool:
    """Whether a class of the program overrides what the library's class defines.

    Without names, any class that is no known library's does: a tensor's own class sees all that is asked.
    """
    for base in layout.mro:
        library = layout_of(base).module.partition(".")[0] in _KNOWN_LIBRARIES
        if library or any(base is cls for cls in known):
            return False
        if not names or any(name in namespace_of(base) for name in names):
            return True
    return False


def _own_sizeof(cls: type) -> bool:
    """Whether `__sizeof__` is written in Python."""
    for base in layout_of(cls).mro:
        if "__sizeof__" in namespace_of(base):
            return type(namespace_of(base)["__sizeof__"]) is FunctionType
    return False


def own_bytes(obj: object, cls: type) -> int:
    """Bytes of one object without what it refers to; a `__sizeof__` written in Python is not run."""
    if _own_sizeof(cls):
        return object.__sizeof__(obj) + _GC_HEADER
    return sys.getsizeof(obj)


def values_bytes(cls: type, parts: list[Any]) -> int:
    """Bytes of an instance's attribute values where CPython 3.11 and 3.12 keep them apart from any dict.

    They are an array with one place more than the attributes, and a byte for each before it (`new_values` in
    CPython's Objects/dictobject.c); `parts` holds the class beside the values.
    """
    if not _VALUES_APART or not flags_of(cls) & _MANAGED_DICT or any(type(part) is dict for part in parts):
        return 0
    return 8 * len(parts) + (len(parts) + 2 + 7) // 8 * 8
