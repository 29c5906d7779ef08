"""Finds functions and unused executable bytes of a process in the ELF files that it has mapped."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_PT_LOAD, _PF_X, _SHT_DYNSYM = 1, 1, 11
_ET_EXEC = 2  # a file with absolute addresses
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LONGEST_NAME = 64
# Libraries that are never unloaded: the interpreter, libc and the loader.
_PERMANENT_LIBRARIES = ("libpython", "libc.", "libc-", "ld-")


class Mapping(NamedTuple):
    """A part of the address space of a process."""

    start: int
    end: int
    permissions: str
    is_first_page: bool
    name: str


def mappings(pid: int) -> list[Mapping]:
    """Return the mappings of a process by ascending address; the name of an anonymous one is empty.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    result = []
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        start, end = (int(text, 16) for text in fields[0].split("-"))
        name = fields[5] if len(fields) == 6 else ""
        result.append(Mapping(start, end, fields[1], fields[2] == "00000000", name))
    return result


def exported(pid: int, names: Collection[str]) -> dict[str, int]:
    """Return addresses by name from the program or its `libpython`; empty unless one file exports all names.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    for path, start in _files(pid, ("libpython",)):
        try:
            with _open_elf(pid, path) as content:
                addresses = _symbols(content, set(names), start)
        except (OSError, ValueError, struct.error):  # replaced since it was loaded, or no library
            continue
        if len(addresses) == len(names):
            return addresses
    return {}


def unused_code(pid: int) -> Iterator[tuple[int, int]]:
    """Start and end of the bytes between the end of a library's code and the end of its last page.

    They are mapped, executable, and part of no function.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    executable = [mapping for mapping in mappings(pid) if "x" in mapping.permissions]
    for path, start in _files(pid, _PERMANENT_LIBRARIES):
        try:
            with _open_elf(pid, path) as content:
                ends = _ends_of_code(content, start)
        except (OSError, ValueError, struct.error):
            continue
        for end in ends:
            for mapping in executable:
                if mapping.name == path and mapping.start <= end - 1 < mapping.end:
                    yield end, mapping.end


def _files(pid: int, prefixes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the program and the libraries with these prefixes, each with the address of its first page."""
    program = os.readlink(f"/proc/{pid}/exe")
    lowest: dict[str, int] = {}
    for mapping in mappings(pid):
        if mapping.name.startswith("/") and mapping.is_first_page:
            lowest.setdefault(mapping.name, mapping.start)
    for path, start in lowest.items():
        if path == program or os.path.basename(path).startswith(prefixes):
            yield path, start


def _open_elf(pid: int, path: str) -> mmap.mmap:
    """Map a file of the process into this one; raise ValueError if it is not an ELF file."""
    with open(f"/proc/{pid}/root{path}", "rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if content[: len(_MAGIC)] != _MAGIC:
        content.close()
        raise ValueError("no ELF file")
    return content


def _load_segments(content: mmap.mmap, start: int) -> tuple[int, list[tuple[int, ...]]]:
    """Return the load bias of a file mapped at `start`, and its PT_LOAD headers."""
    kind = struct.unpack_from("<H", content, 16)[0]
    program_headers, count = (
        struct.unpack_from("<Q", content, 32)[0],
        struct.unpack_from("<H", content, 56)[0],
    )
    headers = (
        _PROGRAM_HEADER.unpack_from(content, program_headers + index * _PROGRAM_HEADER.size)
        for index in range(count)
    )
    segments = [header for header in headers if header[0] == _PT_LOAD]
    lowest = min(header[3] - header[2] for header in segments)
    return 0 if kind == _ET_EXEC else start - lowest, segments


def _ends_of_code(content: mmap.mmap, start: int) -> list[int]:
    base, segments = _load_segments(content, start)
    return [base + header[3] + max(header[5:7]) for header in segments if header[1] & _PF_X]


def _symbols(content: mmap.mmap, names: set[str], start: int) -> dict[str, int]:
    """Return the addresses of dynamic symbols of a file mapped at `start`."""
    base, _ = _load_segments(content, start)
    sections, count = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    headers = [
        _SECTION_HEADER.unpack_from(content, sections + index * _SECTION_HEADER.size)
        for index in range(count)
    ]
    symbols: dict[str, int] = {}
    for header in headers:
        if header[1] != _SHT_DYNSYM:
            continue
        offset, size, string_table = header[4], header[5], headers[header[6]][4]
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(content[offset : offset + size]):
            if section:
                begin = string_table + name
                symbol = content[begin : content.find(b"\0", begin, begin + _LONGEST_NAME)].decode("latin-1")
                if symbol in names:
                    symbols[symbol] = base + value
    return symbols
