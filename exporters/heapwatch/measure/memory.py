"""A piece of memory that an object brings along, and where it is."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Literal

# Where bytes live: only those on the heap are this process's alone and stay until freed. File-backed pages
# (mapped) the kernel takes back under pressure; of shared memory there is one copy for several processes.
Place = Literal["heap", "gpu", "mapped", "shared"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory outside of Python's own objects; whoever brings the same address shares it.

    Attributes:
        address: where it is, or any other number that tells it apart.
        nbytes: its length in bytes.
        place: where it lives.
        references: how many objects are known to hold it.
        slack: bytes that the holder may keep alive beyond `nbytes`, or that others count too.

    """

    address: int
    nbytes: int
    place: Place
    references: int = 1
    slack: int = 0


class Unread:
    """Stands for memory of which nothing is known but that an object holds it."""


UNREAD = Unread()


def classes(module: str, *names: str) -> tuple[type, ...]:
    """The named classes of `module` if the program has imported it; never imports it itself."""
    loaded = sys.modules.get(module)
    found = (getattr(loaded, name, None) for name in names)
    return tuple(cls for cls in found if isinstance(cls, type))


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


def exported_memory(obj: object) -> tuple[int, int]:
    """Address and bytes of what `obj` exports by the buffer protocol; zeros where it exports nothing."""
    buffer = _Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(obj), ctypes.byref(buffer), _FULL_READ_ONLY)
    except (TypeError, BufferError, ValueError, NotImplementedError):
        return 0, 0
    found = buffer.buf or 0, buffer.len
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return found
