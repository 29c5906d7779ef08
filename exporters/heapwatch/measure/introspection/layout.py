"""Layout of a class: how to inspect its instances without running code of the class or its metaclass."""

from __future__ import annotations

import functools
import io
import sys
import threading
import types
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

# How to inspect an object. Strings, not an Enum: they are compared for each object.
Kind = Literal[
    "atom", "list", "tuple", "deque", "dict", "set", "text", "raw", "array", "tensor", "frame_table", "cache",
    "programs",
    "function", "method", "partial", "cell", "generator", "module", "class", "object",
]  # fmt: skip

LEAVES = frozenset[Kind](("atom", "class", "module"))  # what refers to nothing worth following
_MOST_CACHED = 20_000

_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_name: Callable[[type], str] = type.__dict__["__name__"].__get__
namespace_of: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__
flags_of: Callable[[type], int] = type.__dict__["__flags__"].__get__
_GC_HEADER = 16
HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
# A key for an object: its own hash and comparison may be code of the program, and `id` calls audit hooks.
identity: Callable[[object], int] = object.__hash__

CACHE_TYPE: Any = type(functools.lru_cache(lambda: None))
_CLASSES_OF: dict[Kind, tuple[type, ...]] = {
    "list": (list,),
    "tuple": (tuple,),
    "deque": (deque,),
    "dict": (dict,),
    "set": (set, frozenset),
    "text": (str, bytes, bytearray, io.BytesIO, io.StringIO),
    "raw": (array,),
    "class": (type,),
    "module": (types.ModuleType,),
    "function": (types.FunctionType,),
    "method": (types.MethodType, types.BuiltinFunctionType),
    "partial": (functools.partial, types.MappingProxyType),
    "cell": (types.CellType,),
    # Asking a thread-local object for its attributes would make some for the thread that asks.
    "generator": (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, threading.local),
    "cache": (CACHE_TYPE,),
    "object": (types.TracebackType, staticmethod, classmethod),
    "atom": (
        types.CodeType, types.FrameType, weakref.ref, weakref.ProxyType, weakref.CallableProxyType, property,
        int, float, complex, type(None), range, slice,
    ),
}  # fmt: skip
_KIND_OF: dict[type, Kind] = {cls: kind for kind, known in _CLASSES_OF.items() for cls in known}


def classes(module: str, *names: str) -> tuple[type, ...]:
    """The named classes of `module` if the program has imported it; it is never imported here."""
    imported = sys.modules.get(module)
    attributes = (getattr(imported, name, None) for name in names)
    return tuple(cls for cls in attributes if isinstance(cls, type))


def is_complete(cls: type) -> bool:
    """Whether a class has bases and attributes: not while it is made, nor after the collector cleared it."""
    mro = _mro(cls)
    return mro is not None and all(namespace_of(base) is not None for base in mro)


class Layout:
    """How instances of one class are inspected. It keeps no class alive: a program may make many.

    Attributes:
        name: the class's name.
        module: the module that defines it; `builtins` if it has no such attribute.
        kind: see `Kind`.
        namespace: reads an instance's attribute dict; None if instances have none.
        slots: readers of the attributes in slots, by name.
        is_plainly_sized: whether its `__sizeof__` is C code of the interpreter, its libraries or numpy.
        names: names of attributes that instances had, and others that code of the class assigns; None before
            the first instance is read by `heapwatch.measure.introspection.attributes`.
        assigned, bookkeeping: kept for the same module.

    """

    __slots__ = (
        "_cls", "_is_complete", "assigned", "bookkeeping", "is_plainly_sized", "kind", "module", "name",
        "names", "namespace", "slots",
    )  # fmt: skip

    def __init__(self, cls: type) -> None:
        self._cls, self._is_complete = weakref.ref(cls), is_complete(cls)
        mro = self.mro
        self.name = _name(cls)
        self.module = _module(cls)
        self.kind: Kind = _kind(mro)
        self.namespace: Callable[[Any], Any] | None = None
        self.slots: dict[str, Callable[[Any], Any]] = {}
        self.is_plainly_sized = _is_plainly_sized(mro)
        self.assigned: tuple[str, ...] | None = None
        self.names: tuple[list[str], list[str]] | None = None
        self.bookkeeping: frozenset[str] | None = None
        for base in reversed(mro):
            for name, value in namespace_of(base).items():
                if type(value) is types.MemberDescriptorType and type(name) is str:
                    self.slots[name] = _reader(name, types.MemberDescriptorType)
                elif name == "__dict__" and type(value) is types.GetSetDescriptorType:
                    self.namespace = _reader(name, types.GetSetDescriptorType)

    @property
    def mro(self) -> tuple[type, ...]:
        """The class and its bases, in the order of look-up; `object` alone if the class is not complete."""
        cls = self._cls() if self._is_complete else None
        return (None if cls is None else _mro(cls)) or (object,)


def _reader(name: str, descriptor: type[Any]) -> Callable[[Any], Any]:
    """Reads an attribute by the interpreter's descriptor, whatever else the program's classes have there.

    The descriptor refers to its class, so it is looked up each time; the class may have been changed, too.
    """

    def read(obj: Any) -> Any:
        for base in _mro(type(obj)):
            value: Any = namespace_of(base).get(name)
            if type(value) is descriptor:
                return value.__get__(obj)
        raise AttributeError(name)

    return read


def _module(cls: type) -> str:
    try:
        module = type.__dict__["__module__"].__get__(cls)
    except AttributeError:  # a class of C code need not have one: those that SWIG makes
        return "builtins"
    return module if type(module) is str else "builtins"


def _is_plainly_sized(mro: tuple[type, ...]) -> bool:
    base = next(base for base in mro if "__sizeof__" in namespace_of(base))
    library = _module(base).partition(".")[0]
    is_python = type(namespace_of(base)["__sizeof__"]) is types.FunctionType
    return not is_python and (library in sys.stdlib_module_names or library == "numpy")


_cached: dict[int, tuple[weakref.ref[type], Layout]] = {}


def layout_of(cls: type) -> Layout:
    """The layout of a class; cached by identity, because a metaclass may define equality and hash."""
    cached = _cached.get(id(cls))
    if cached is not None and cached[0]() is cls:
        return cached[1]
    if len(_cached) >= _MOST_CACHED:
        _cached.clear()
    layout = Layout(cls)
    if is_complete(cls):
        key = id(cls)
        _cached[key] = (weakref.ref(cls, lambda _: _cached.pop(key, None)), layout)
    return layout


def own_bytes(obj: object, cls: type) -> int:
    """Bytes of one object without what it refers to.

    A `__sizeof__` written in Python is not run, nor that of a library, which may be changing the object.
    """
    if layout_of(cls).is_plainly_sized:
        return sys.getsizeof(obj)
    return object.__sizeof__(obj) + (_GC_HEADER if flags_of(cls) & HAS_GC else 0)


def _kind(mro: tuple[type, ...]) -> Kind:
    for base in mro:
        # `type` objects are compared by identity and hashed by their metaclass: ask only plain ones.
        if type(base) is type and (kind := _KIND_OF.get(base)) is not None:
            return kind
        if any(base is known for known in classes("numpy", "ndarray")):
            return "array"
        if any(base is known for known in classes("torch", "Tensor")):
            return "tensor"
        if any(base is known for known in classes("jaxlib._jax", "PjitFunction")):
            return "programs"
        if _name(base) == "NDFrame" and str(namespace_of(base).get("__module__")).startswith("pandas."):
            return "frame_table"
    return "object"
