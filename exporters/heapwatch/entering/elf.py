"""Where functions and unused bytes of a process are, read from the ELF files that it has mapped."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_LOADED, _EXECUTABLE, _DYNAMIC_SYMBOLS = 1, 1, 11
_FIXED = 2  # the kind of a file whose addresses are absolute
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LONGEST_NAME = 64
# Libraries that are never unloaded: that of the interpreter, that of C, and the loader.
_LASTING = ("libpython", "libc.", "libc-", "ld-")


class Mapping(NamedTuple):
    """A part of the address space of a process."""

    start: int
    end: int
    permissions: str
    is_first_page: bool
    name: str


def mappings(pid: int) -> list[Mapping]:
    """The address space of a process, the lowest first; the name of an anonymous part is empty.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        start, end = (int(text, 16) for text in fields[0].split("-"))
        name = fields[5] if len(fields) == 6 else ""
        found.append(Mapping(start, end, fields[1], fields[2] == "00000000", name))
    return found


def exported(pid: int, names: Collection[str]) -> dict[str, int]:
    """Addresses by name in the program, or in a `libpython` that it has loaded; empty unless it has them all.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    for path, start in _files(pid, ("libpython",)):
        try:
            with _opened(pid, path) as content:
                found = _symbols(content, set(names), start)
        except (OSError, ValueError, struct.error):  # replaced since it was loaded, or no library
            continue
        if len(found) == len(names):
            return found
    return {}


def unused_code(pid: int) -> Iterator[tuple[int, int]]:
    """Start and end of the bytes between the end of a library's code and the end of its last page.

    They are mapped, executable, and part of no function.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    executable = [one for one in mappings(pid) if "x" in one.permissions]
    for path, start in _files(pid, _LASTING):
        try:
            with _opened(pid, path) as content:
                ends = _ends_of_code(content, start)
        except (OSError, ValueError, struct.error):
            continue
        for end in ends:
            for one in executable:
                if one.name == path and one.start <= end - 1 < one.end:
                    yield end, one.end


def _files(pid: int, prefixes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The program and the libraries whose names begin so, each with the address of its first page."""
    program = os.readlink(f"/proc/{pid}/exe")
    lowest: dict[str, int] = {}
    for one in mappings(pid):
        if one.name.startswith("/") and one.is_first_page:
            lowest.setdefault(one.name, one.start)
    for path, start in lowest.items():
        if path == program or os.path.basename(path).startswith(prefixes):
            yield path, start


def _opened(pid: int, path: str) -> mmap.mmap:
    """The content of a file that the process has mapped; raises ValueError if it is no ELF file."""
    with open(f"/proc/{pid}/root{path}", "rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if content[: len(_MAGIC)] != _MAGIC:
        content.close()
        raise ValueError("no ELF file")
    return content


def _loaded(content: mmap.mmap, start: int) -> tuple[int, list[tuple[int, ...]]]:
    """What is added to the addresses in a file that is mapped at `start`, and its loaded segments."""
    kind = struct.unpack_from("<H", content, 16)[0]
    programs, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    headers = (
        _PROGRAM_HEADER.unpack_from(content, programs + at * _PROGRAM_HEADER.size) for at in range(count)
    )
    loaded = [header for header in headers if header[0] == _LOADED]
    first = min(header[3] - header[2] for header in loaded)
    return 0 if kind == _FIXED else start - first, loaded


def _ends_of_code(content: mmap.mmap, start: int) -> list[int]:
    base, loaded = _loaded(content, start)
    return [base + header[3] + max(header[5:7]) for header in loaded if header[1] & _EXECUTABLE]


def _symbols(content: mmap.mmap, names: set[str], start: int) -> dict[str, int]:
    """Addresses of symbols of a file that is mapped at `start`."""
    base, _ = _loaded(content, start)
    sections, count = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    headers = [
        _SECTION_HEADER.unpack_from(content, sections + at * _SECTION_HEADER.size) for at in range(count)
    ]
    symbols: dict[str, int] = {}
    for header in headers:
        if header[1] != _DYNAMIC_SYMBOLS:
            continue
        offset, size, text = header[4], header[5], headers[header[6]][4]
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(content[offset : offset + size]):
            if section:
                begin = text + name
                word = content[begin : content.find(b"\0", begin, begin + _LONGEST_NAME)].decode("latin-1")
                if word in names:
                    symbols[word] = base + value
    return symbols
