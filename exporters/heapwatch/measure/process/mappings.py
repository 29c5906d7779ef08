"""The memory mappings of this process, from procfs."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

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
