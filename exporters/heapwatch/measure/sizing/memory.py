"""A block of memory that belongs to an object, and its place."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from heapwatch.measure.introspection.alone import call_alone

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

    It is asked for and given back in one call into C. While it is lent, the program could not resize the
    object.

    Args:
        obj: the object.
        alone: only while all other threads wait; else the result is None.

    """
    api, buffer = ctypes.pythonapi, _Buffer()
    where = ctypes.byref(buffer)
    asked = map(api.PyObject_GetBuffer, [ctypes.py_object(obj)], [where], [_FULL_READ_ONLY])
    calls = chain(asked, map(api.PyBuffer_Release, [where]))
    try:
        done = call_alone(calls) if alone else list(calls)
    except (TypeError, BufferError, ValueError, NotImplementedError):
        return 0, 0
    return (buffer.buf or 0, buffer.len) if done else None
