"""Blocks of memory that belong to objects, their place, and the mappings of the process."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from heapwatch.measure.introspection.exclusive_reads import call_alone

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

    It is asked for and given back in one call into C. While it is held, the program could not resize the
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


_IN_MEMORY = ("/dev/shm/", "/dev/zero", "/memfd:", "/SYSV")  # files that lie nowhere else


class Mappings:
    """The mappings around an address; they are read once, at the first call.

    Args:
        path: the kernel's list of mappings; without it all results are unknown.

    """

    def __init__(self, path: Path = Path("/proc/self/maps")) -> None:
        self._path = path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._in_file: list[bool] = []

    def extent(self, address: int) -> int | None:
        """Bytes of the unbroken run of mappings that may hold the memory at `address`; None if unknown."""
        at = self._find(address)
        return None if at is None else self._ends[at] - (self._starts or [])[at]

    def in_file(self, address: int) -> bool:
        """Whether the kernel can read the page of `address` again from a file."""
        at = self._find(address)
        return at is not None and self._in_file[at]

    def _find(self, address: int) -> int | None:
        if self._starts is None:
            self._read()
        starts = self._starts or []
        at = bisect_right(starts, address) - 1
        return at if at >= 0 and address < self._ends[at] else None

    def _read(self) -> None:
        self._starts = []
        try:
            lines = self._path.read_text().splitlines()
        except OSError:
            return
        sort = (True, "")
        for line in lines:
            fields = line.split(maxsplit=5)
            start, end = (int(number, 16) for number in fields[0].split("-"))
            name = fields[5] if len(fields) > 5 else ""
            in_file = fields[4] != "0" and not name.startswith(_IN_MEMORY)
            # Advice on pages splits a mapping; other rights are another's.
            sort, before = (in_file, fields[1]), sort
            if self._starts and self._ends[-1] == start and sort == before and not in_file:
                self._ends[-1] = end
                continue
            self._starts.append(start)
            self._ends.append(end)
            self._in_file.append(in_file)
