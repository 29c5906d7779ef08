"""Memory outside Python objects: blocks of libraries such as JAX, Arrow and Ray, and memory mappings.

Memory is read only from libraries that the program has imported, by methods that neither copy, nor wait for a
device, nor run code of the program. Objects of other extension types count as unread.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import sys
import types
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from inspect import unwrap
from itertools import chain
from pathlib import Path
from threading import main_thread
from types import FunctionType, MemberDescriptorType
from typing import Any, Literal

from heapwatch.measure.introspection.exclusive_reads import call_alone, read_alone
from heapwatch.measure.introspection.frames import callers, innermost
from heapwatch.measure.introspection.layout import Layout, classes, layout_of, namespace_of

# The place of bytes. Only the heap belongs to this process alone and stays until it is freed. The kernel can
# drop file-backed pages (mapped), and shared memory has one copy for several processes.
MemoryPlace = Literal["heap", "gpu", "mapped", "shared"]


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory outside of Python's own objects; objects with the same address share it.

    Attributes:
        address: its address, or another number that identifies it.
        nbytes: its length in bytes.
        place: see `MemoryPlace`.
        references: number of objects that are known to refer to it.
        slack: bytes that its owner may keep in addition, or that others count too.

    """

    address: int
    nbytes: int
    place: MemoryPlace
    references: int = 1
    slack: int = 0


class Unread:
    """Memory of unknown size that an object holds."""


UNREAD = Unread()


class _Buffer(ctypes.Structure):
    """CPython's `Py_buffer`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_FULL_READ_ONLY = 0x11C  # PyBUF_FULL_RO: whatever its shape


def exported_memory(obj: object, *, alone: bool = False) -> tuple[int, int] | None:
    """Address and bytes of the buffer that `obj` exports; zeros if it exports none.

    Acquires and releases the buffer in one call into C: the program could not resize the object meanwhile.

    Args:
        obj: the object.
        alone: only while all other threads wait; else the result is None.

    """
    api, buffer = ctypes.pythonapi, _Buffer()
    reference = ctypes.byref(buffer)
    requests = map(api.PyObject_GetBuffer, [ctypes.py_object(obj)], [reference], [_FULL_READ_ONLY])
    calls = chain(requests, map(api.PyBuffer_Release, [reference]))
    try:
        results = call_alone(calls) if alone else list(calls)
    except (TypeError, BufferError, ValueError, NotImplementedError):
        return 0, 0
    return (buffer.buf or 0, buffer.len) if results else None


_IN_MEMORY = ("/dev/shm/", "/dev/zero", "/memfd:", "/SYSV")  # files that lie nowhere else


class Mappings:
    """The mappings around an address; they are read once, at the first call.

    Args:
        path: the kernel's list of mappings; without it nothing is known to lie in a file.

    """

    def __init__(self, path: Path = Path("/proc/self/maps")) -> None:
        self._path = path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._in_file: list[bool] = []

    def in_file(self, address: int) -> bool:
        """Whether the kernel can read the page of `address` again from a file."""
        if self._starts is None:
            self._read()
        index = bisect_right(self._starts or [], address) - 1
        return index >= 0 and address < self._ends[index] and self._in_file[index]

    def _read(self) -> None:
        self._starts = []
        try:
            lines = self._path.read_text().splitlines()
        except OSError:
            return
        for line in lines:
            fields = line.split(maxsplit=5)
            start, end = (int(number, 16) for number in fields[0].split("-"))
            name = fields[5] if len(fields) > 5 else ""
            self._starts.append(start)
            self._ends.append(end)
            self._in_file.append(fields[4] != "0" and not name.startswith(_IN_MEMORY))


Part = MemoryBlock | Unread | Any
Reader = Callable[[Any, Mappings], Iterator[Part]]


def reader_of(mro: tuple[type, ...]) -> Reader | None:
    """The function that reads the memory of a class's instances; None if there is none."""
    for module, name, reader in _READERS:
        for cls in classes(module, name):
            if any(base is cls for base in mro):
                return reader
    return None


def exported(obj: Any, mro: tuple[type, ...]) -> Iterator[Part]:
    """Memory that an object of an unknown type exports by the buffer protocol; it may hold more."""
    yield UNREAD
    namespaces = [namespace_of(base) for base in mro]
    in_python = any(type(space.get("__buffer__")) is FunctionType for space in namespaces)
    if not in_python and (memory := exported_memory(obj, alone=True)) is not None:
        yield MemoryBlock(memory[0], memory[1], "heap")


def _jax(array: Any, _: Mappings) -> Iterator[Part]:
    """A `jax.Array`: its pieces on this process's devices, and its cached copy in RAM.

    Reading them does not wait for pending computations.
    """
    if array.is_deleted():
        return
    if (copy := array._npy_value) is not None:
        yield copy
    on_host = array.platform() == "cpu" or array.sharding.memory_kind in ("pinned_host", "unpinned_host")
    place: MemoryPlace = "heap" if on_host else "gpu"
    # The pieces of a sharded array are arrays; any other array is its own only piece.
    for piece in array._arrays:
        size = piece.on_device_size_in_bytes()
        try:  # an array cannot be donated while its address is read
            addresses = read_alone([piece], (type(piece).unsafe_buffer_pointer,))
        except RuntimeError:  # a device without addresses
            addresses = None
        if addresses is None:  # another array may share it
            yield MemoryBlock(id(piece) + 1, size, place, slack=size if on_host else 0)
        else:
            yield MemoryBlock(addresses[0][0], size, place)


def _arrow_buffer(buffer: Any, mappings: Mappings) -> Iterator[Part]:
    while (parent := buffer.parent) is not None:
        buffer = parent
    place: MemoryPlace = "heap"
    if not buffer.is_cpu:
        place = "gpu"
    elif not buffer.is_mutable and mappings.in_file(buffer.address):
        place = "mapped"
    yield MemoryBlock(buffer.address, buffer.size, place)


def _arrow_array(array: Any, mappings: Mappings) -> Iterator[Part]:
    library: Any = sys.modules["pyarrow.lib"]
    for buffer in library.Array.buffers(array):
        if buffer is not None:
            yield from _arrow_buffer(buffer, mappings)
    if isinstance(array, library.DictionaryArray):
        yield array.dictionary
    elif "dictionary<" in str(array.type):
        yield UNREAD


def _numpy_bits(generator: Any, _: Mappings) -> Iterator[Part]:
    """A bit generator; its capsule points into the object itself."""
    yield from (part for part in gc.get_referents(generator) if type(part).__name__ != "PyCapsule")


def _mapping(mapped: Any, mappings: Mappings) -> Iterator[Part]:
    address, size = exported_memory(mapped) or (0, 0)
    yield MemoryBlock(address, size, "mapped" if mappings.in_file(address) else "shared")


def _object_ref(reference: Any, _: Mappings) -> Iterator[Part]:
    """A `ray.ObjectRef`: the object that it keeps, in Ray's store or, if small, in the memory of its owner.

    `ray.experimental.get_local_object_locations`, public since Ray 2.23, looks into a table of this process.
    Its size is unknown until the object is made.
    """
    ray: Any = sys.modules["ray"]
    locate = getattr(getattr(ray, "experimental", None), "get_local_object_locations", None)
    location: dict[str, Any] = {}
    with suppress(Exception):  # also of a module that is another one of this name
        # Of another class is a reference of Ray's client, which would ask a server.
        if locate is not None and type(reference) is ray.ObjectRef and _is_connected(ray):
            location = locate([reference]).get(reference, {})
    if (size := location.get("object_size")) is None:
        yield UNREAD
        return
    place: MemoryPlace = "shared" if location.get("node_ids") or location.get("did_spill") else "heap"
    yield MemoryBlock(int.from_bytes(reference.binary(), "little"), size, place)


def _is_connected(ray: Any) -> bool:
    """Whether Ray has its table. To ask for it after `ray.shutdown` ends the process.

    The main thread, once it is in that function, needs longer to disconnect than this takes with a look into
    the table.
    """
    shutdown = getattr(unwrap(ray.shutdown), "__code__", None)
    ends = any(frame.f_code is shutdown for frame in callers(innermost(main_thread().ident or 0)))
    return not ends and bool(ray.is_initialized())


_READERS: tuple[tuple[str, str, Reader], ...] = (
    ("jaxlib._jax", "ArrayImpl", _jax),
    ("jaxlib.xla_extension", "ArrayImpl", _jax),
    ("pyarrow.lib", "Buffer", _arrow_buffer),
    ("pyarrow.lib", "Array", _arrow_array),
    ("pyarrow.lib", "ChunkedArray", lambda chunked, _: iter(chunked.chunks)),
    ("pyarrow.lib", "_Tabular", lambda table, _: iter(table.itercolumns())),
    ("numpy.random", "BitGenerator", _numpy_bits),
    ("mmap", "mmap", _mapping),
    ("ray", "ObjectRef", _object_ref),
)

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
    nbytes = _size_of(cls) - _size_of(base)
    nbytes -= _POINTER * sum(type(value) is MemberDescriptorType for value in namespace_of(cls).values())
    nbytes -= _POINTER * (_dict_at(cls) > 0 >= _dict_at(base))
    nbytes -= _POINTER * (_weakrefs_at(cls) > 0 >= _weakrefs_at(base))
    return nbytes


def _is_plain(cls: type) -> bool:
    layout = layout_of(cls)
    if id(cls) in _OF_THE_INTERPRETER:
        return True
    library = layout.module.partition(".")[0]
    if library in sys.stdlib_module_names and library != "builtins":
        return library not in _FOREIGN_OF_THE_STANDARD_LIBRARY
    return library in _PLAIN_LIBRARIES or f"{layout.module}.{layout.name}" in _PLAIN_TYPES
