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
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class Mapping(NamedTuple):
    """The lowest mapping of a file: where it begins, and the file."""

    start: int
    path: str


def exported(pid: int, names: Collection[str]) -> dict[str, int]:
    """Addresses by name in the program, or in a `libpython` that it has loaded; empty unless it has them all.

    Raises:
        OSError: the process has ended, or this user may not look.

    """
    for mapping in _libraries(pid):
        try:
            found = _symbols(Path(f"/proc/{pid}/root{mapping.path}"), set(names))
        except (OSError, ValueError, struct.error):  # replaced since it was loaded, or no library
            continue
        if len(found) == len(names):
            first, is_fixed, symbols = found.first, found.is_fixed, found.symbols
            base = 0 if is_fixed else mapping.start - first
            return {name: base + value for name, value in symbols.items()}
    return {}


def first_mapping(pid: int, name: str) -> tuple[int, int] | None:
    """Start and end of the first mapping of this name, such as `[vdso]`; None without one."""
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5] == name:
            start, end = fields[0].split("-")
            return int(start, 16), int(end, 16)
    return None


def _libraries(pid: int) -> Iterator[Mapping]:
    program = os.readlink(f"/proc/{pid}/exe")
    starts: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/") and fields[2] == "00000000":
            starts.setdefault(fields[5], int(fields[0].split("-")[0], 16))
    for path, start in starts.items():
        if path == program or os.path.basename(path).startswith("libpython"):
            yield Mapping(start, path)


class _Found(NamedTuple):
    symbols: dict[str, int]
    first: int
    is_fixed: bool

    def __len__(self) -> int:
        return len(self.symbols)


def _symbols(path: Path, names: set[str]) -> _Found:
    """Values of symbols, the address that the file's first page has in them, and whether that is absolute."""
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
                        symbols[word] = value
        return _Found(symbols, first, kind == 2)
