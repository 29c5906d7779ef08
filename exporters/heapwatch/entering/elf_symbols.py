"""Addresses of the functions that the interpreter of another process exports (ELF, `/proc`)."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_LOADED, _DYNAMIC_SYMBOLS = 1, 11
_FIXED = 2  # the kind of a file whose addresses are absolute
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class _Mapping(NamedTuple):
    start: int
    end: int
    is_first_page: bool
    name: str


def exported(pid: int, names: Collection[str]) -> dict[str, int]:
    """Addresses by name in the program, or in a `libpython` that it has loaded; empty unless it has them all.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    for mapping in _libraries(pid):
        try:
            found = _symbols(Path(f"/proc/{pid}/root{mapping.name}"), set(names), mapping.start)
        except (OSError, ValueError, struct.error):  # replaced since it was loaded, or no library
            continue
        if len(found) == len(names):
            return found
    return {}


def first_mapping(pid: int, name: str) -> tuple[int, int] | None:
    """Start and end of the first mapping of this name, such as `[vdso]`; None without one."""
    return next(((one.start, one.end) for one in _mappings(pid) if one.name == name), None)


def _mappings(pid: int) -> Iterator[_Mapping]:
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6:
            start, end = (int(text, 16) for text in fields[0].split("-"))
            yield _Mapping(start, end, fields[2] == "00000000", fields[5])


def _libraries(pid: int) -> Iterator[_Mapping]:
    """The lowest mapping of each file that may hold the interpreter."""
    program = os.readlink(f"/proc/{pid}/exe")
    lowest: dict[str, _Mapping] = {}
    for one in _mappings(pid):
        if one.name.startswith("/") and one.is_first_page:
            lowest.setdefault(one.name, one)
    for path, one in lowest.items():
        if path == program or os.path.basename(path).startswith("libpython"):
            yield one


def _symbols(path: Path, names: set[str], start: int) -> dict[str, int]:
    """Addresses of symbols of a file that is mapped at `start`."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(_MAGIC)] != _MAGIC:
            raise ValueError("no ELF file")
        kind = struct.unpack_from("<H", content, 16)[0]
        programs, sections = struct.unpack_from("<QQ", content, 32)
        count_of_programs, _, count_of_sections = struct.unpack_from("<HHH", content, 56)
        loaded = (
            _PROGRAM_HEADER.unpack_from(content, programs + at * _PROGRAM_HEADER.size)
            for at in range(count_of_programs)
        )
        first = min(header[3] - header[2] for header in loaded if header[0] == _LOADED)
        headers = [
            _SECTION_HEADER.unpack_from(content, sections + at * _SECTION_HEADER.size)
            for at in range(count_of_sections)
        ]
        base = 0 if kind == _FIXED else start - first
        symbols: dict[str, int] = {}
        for header in headers:
            if header[1] != _DYNAMIC_SYMBOLS:
                continue
            offset, size, text = header[4], header[5], headers[header[6]][4]
            for name, _, _, section, value, _ in _SYMBOL.iter_unpack(content[offset : offset + size]):
                if section:
                    begin = text + name
                    word = content[begin : content.find(b"\0", begin, begin + 64)].decode("latin-1")
                    if word in names:
                        symbols[word] = base + value
        return symbols
