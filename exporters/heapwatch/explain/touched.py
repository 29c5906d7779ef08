"""Counts the resident pages of large arrays of zeros: those to which the program has written."""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any

from heapwatch.explain.findings import TOUCHED
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.judge.component import MATERIAL_BYTES
from heapwatch.measure.introspection.layout import layout_of

_MOST_ARRAYS = 8
_SAMPLES = 256
# Bits of an entry (admin-guide/mm/pagemap): present, of this process alone, which the page of zeros is not.
_OWN = 1 << 63 | 1 << 56


class TouchedArrays:
    """Large arrays that are no items of a container, with the number of their touched pages.

    Attributes:
        known: touched pages over time, by path, number of the first page, and number of pages.

    """

    def __init__(self, inventory: Inventory) -> None:
        self.known: dict[tuple[str, int, int], KnownContainer] = {}
        self._inventory = inventory

    @property
    def risen(self) -> float:
        """Bytes by which their resident memory has grown since each was first read."""
        arrays = [array.items for array in self.known.values()]
        return mmap.PAGESIZE * sum(
            (pages.last or 0.0) - pages.since(float("-inf"))[0].least for pages in arrays
        )

    def read(self, now: float) -> None:
        """Read the largest arrays; pages that forked processes share do not count.

        Raises:
            OSError: the kernel does not say which pages are resident.

        """
        arrays = [
            array
            for array in list(self._inventory.known.values())
            if array.kind == "array" and _nbytes(array) >= 2 * MATERIAL_BYTES and "[*]" not in array.path
        ]
        previous, self.known = self.known, {}
        for array in sorted(arrays, key=_nbytes)[-_MOST_ARRAYS:]:
            # All at once: while something else refers to an array, it cannot be resized.
            for first, count in filter(None, [_pages_of(obj) for obj, _ in self._inventory.places_of(array)]):
                key = array.path, first, count
                level = previous.get(key) or KnownContainer(array.path, "ring", "", capacity=count)
                pages = level.items.last or 0.0
                if pages < count:
                    pages = max(pages, _touched(first, count))
                level.items.add(now, pages)
                level.held.add(now, pages * mmap.PAGESIZE)
                level.type_name = f"ndarray, {pages / count:.0%} {TOUCHED}"
                self.known[key] = level


def _nbytes(array: KnownContainer) -> float:
    return array.items.last or 0.0


def _pages_of(obj: Any) -> tuple[int, int] | None:
    """Number of the first page of an array that has memory of its own, and how many there are."""
    numpy = sys.modules["numpy"].ndarray
    if layout_of(type(obj)).kind != "array" or numpy.base.__get__(obj) is not None:
        return None
    address, nbytes = numpy.__array_interface__.__get__(obj)["data"][0], numpy.nbytes.__get__(obj)
    return int(address) // mmap.PAGESIZE, int(nbytes) // mmap.PAGESIZE


def _touched(first: int, pages: int) -> float:
    """About how many of these pages are resident, from some at equal distances."""
    pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        sampled = range(first, first + pages, max(1, pages // _SAMPLES))
        entries = (int.from_bytes(os.pread(pagemap, 8, 8 * page), sys.byteorder) for page in sampled)
        return pages * sum(entry & _OWN == _OWN for entry in entries) / len(sampled)
    finally:
        os.close(pagemap)
