"""Memory that extension libraries hold outside of Python objects.

It is read only from libraries that the program has imported, by methods that neither copy, nor wait for a
device, nor run code of the program. Objects of other extension types count as unread.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from heapwatch.measure.introspection.exclusive_reads import read_alone
from heapwatch.measure.introspection.layout import classes, layout_of, namespace_of
from heapwatch.measure.introspection.roots import is_user_module
from heapwatch.measure.sizing.memory import (
    UNREAD,
    Mappings,
    MemoryBlock,
    MemoryPlace,
    Unread,
    exported_memory,
)

Part = MemoryBlock | Unread | Any
Reader = Callable[[Any, Mappings], Iterator[Part]]


def reader_of(mro: tuple[type, ...]) -> Reader | None:
    """The function that reads the memory of a class's instances; None if there is none."""
    for module, name, reader in _READERS:
        for known in classes(module, name):
            if any(base is known for base in mro):
                return reader
    return None


def exported(obj: Any, mro: tuple[type, ...]) -> Iterator[Part]:
    """Memory that an object of an unknown type exports: buffer protocol and `__cuda_array_interface__`.

    It may hold more than it exports.
    """
    yield UNREAD
    namespaces = [namespace_of(base) for base in mro]
    in_python = any(type(space.get("__buffer__")) is FunctionType for space in namespaces)
    if not in_python and (memory := exported_memory(obj, alone=True)) is not None:
        yield MemoryBlock(memory[0], memory[1], "heap")
    if (read := _device_interface(mro)) is not None:
        with suppress(AttributeError):  # raised for an array in RAM
            yield from _device_array(read(obj))


def is_device_array(mro: tuple[type, ...]) -> bool:
    """Whether instances of a class export their GPU memory by `__cuda_array_interface__`."""
    return _device_interface(mro) is not None


def _device_interface(mro: tuple[type, ...]) -> Callable[[Any], Any] | None:
    for base in mro:
        layout = layout_of(base)
        interface = namespace_of(base).get("__cuda_array_interface__")
        if layout.kind == "tensor" or is_user_module(layout.module):
            return None  # reading it could run code of the program
        if isinstance(interface, (GetSetDescriptorType, MemberDescriptorType, property)):
            return interface.__get__
    return None


def _device_array(interface: Any) -> Iterator[MemoryBlock]:
    """An array by the CUDA Array Interface, version 3."""
    size = int(interface["typestr"][2:])
    strides = interface.get("strides")
    for extent in interface["shape"] if strides is None else ():
        size *= extent
    if strides is not None:
        size += sum(
            (extent - 1) * abs(step) for extent, step in zip(interface["shape"], strides, strict=True)
        )
    yield MemoryBlock(int(interface["data"][0]), size, "gpu")


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
            read = read_alone([piece], (type(piece).unsafe_buffer_pointer,))
        except RuntimeError:  # a device without addresses
            read = None
        if read is None:  # another array may share it
            yield MemoryBlock(id(piece) + 1, size, place, slack=size if on_host else 0)
        else:
            yield MemoryBlock(read[0][0], size, place)


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


def _arrow_chunks(chunked: Any, _: Mappings) -> Iterator[Part]:
    yield from chunked.chunks


def _arrow_table(table: Any, _: Mappings) -> Iterator[Part]:
    yield from table.itercolumns()


def _arrow_scalar(scalar: Any, mappings: Mappings) -> Iterator[Part]:
    if (buffer := scalar.as_buffer()) is not None:
        yield from _arrow_buffer(buffer, mappings)


def _polars_frame(frame: Any, _: Mappings) -> Iterator[Part]:
    yield from frame.get_columns()


def _polars_series(series: Any, mappings: Mappings) -> Iterator[Part]:
    """A column. Whether it is a slice of a longer one is not known.

    If it is, the whole lies in the same run of memory mappings, which bounds the error.
    """
    if series.n_chunks() > 1:
        yield from (chunk._s for chunk in series.get_chunks())
        return
    size = series.estimated_size()
    view = series.to_numpy_view()
    if view is None:  # text, nulls, nested: several pieces of memory
        yield MemoryBlock(id(series) + 1, size, "heap", slack=size)
        yield UNREAD
        return
    address = view.__array_interface__["data"][0]
    around = mappings.extent(address)
    if around is None:
        yield UNREAD
    place: MemoryPlace = "mapped" if mappings.in_file(address) else "heap"
    yield MemoryBlock(address, size, place, slack=max(0, (around or 0) - size))


def _cupy(array: Any, _: Mappings) -> Iterator[Part]:
    memory = array.data.mem
    yield MemoryBlock(int(memory.ptr), int(memory.size), "gpu")


def _pandas_index_engine(engine: Any, _: Mappings) -> Iterator[Part]:
    """The hash table that an index creates at its first look-up."""
    yield MemoryBlock(id(engine) + 1, int(engine.sizeof()), "heap")


def _numpy_bits(generator: Any, _: Mappings) -> Iterator[Part]:
    """A bit generator; its capsule points into the object itself."""
    yield from (part for part in gc.get_referents(generator) if type(part).__name__ != "PyCapsule")


def _mapping(mapped: Any, mappings: Mappings) -> Iterator[Part]:
    address, size = exported_memory(mapped) or (0, 0)
    yield MemoryBlock(address, size, "mapped" if mappings.in_file(address) else "shared")


def _ctypes(obj: Any, _: Mappings) -> Iterator[Part]:
    """A C array or structure that owns its memory."""
    # Read through the library's base class: a structure of the program may override these names.
    base: Any = ctypes.Structure.__mro__[1]
    if base._b_base_.__get__(obj) is None and base._b_needsfree_.__get__(obj):
        yield MemoryBlock(ctypes.addressof(obj), ctypes.sizeof(obj), "heap")


_READERS: tuple[tuple[str, str, Reader], ...] = (
    ("jaxlib._jax", "ArrayImpl", _jax),
    ("jaxlib.xla_extension", "ArrayImpl", _jax),
    ("pyarrow.lib", "Buffer", _arrow_buffer),
    ("pyarrow.lib", "Array", _arrow_array),
    ("pyarrow.lib", "ChunkedArray", _arrow_chunks),
    ("pyarrow.lib", "_Tabular", _arrow_table),
    ("pyarrow.lib", "BinaryScalar", _arrow_scalar),
    ("polars._plr", "PySeries", _polars_series),
    ("polars._plr", "PyDataFrame", _polars_frame),
    ("polars.polars", "PySeries", _polars_series),
    ("polars.polars", "PyDataFrame", _polars_frame),
    ("cupy", "ndarray", _cupy),
    ("pandas._libs.index", "IndexEngine", _pandas_index_engine),
    ("numpy.random", "BitGenerator", _numpy_bits),
    ("mmap", "mmap", _mapping),
    ("_ctypes", "Array", _ctypes),
    ("_ctypes", "Structure", _ctypes),
    ("_ctypes", "Union", _ctypes),
)
