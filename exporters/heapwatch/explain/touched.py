"""Large arrays of zeros, whose pages take no memory until the program writes to them."""

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
    """The arrays of a program that are no items of a container, and how many of their pages are touched.

    Attributes:
        known: touched pages over time, by path, number of the first page, and number of pages.

    """

    def __init__(self, inventory: Inventory) -> None:
        self.known: dict[tuple[str, int, int], KnownContainer] = {}
        self._inventory = inventory

    @property
    def risen(self) -> float:
        """Bytes by which their resident memory has grown since each was first read."""
        levels = [one.items for one in self.known.values()]
        return mmap.PAGESIZE * sum((one.last or 0.0) - one.since(float("-inf"))[0].least for one in levels)

    def read(self, now: float) -> None:
        """Read the largest arrays; while forked processes share pages, those do not count.

        Raises:
            OSError: the kernel does not say which pages are resident.

        """
        large = [
            one
            for one in list(self._inventory.known.values())
            if one.kind == "array" and (one.items.last or 0.0) >= 2 * MATERIAL_BYTES and "[*]" not in one.path
        ]
        large.sort(key=lambda one: one.items.last or 0.0)
        known, self.known = self.known, {}
        for array in large[-_MOST_ARRAYS:]:
            # All at once: while something else refers to an array, it cannot be resized.
            for where in filter(None, [_pages_of(obj) for obj, _ in self._inventory.places_of(array)]):
                key = array.path, *where
                one = known.get(key) or KnownContainer(array.path, "ring", "", capacity=where[1])
                before = one.items.last or 0.0
                pages = before if before >= where[1] else max(before, _touched(*where))
                one.items.add(now, pages)
                one.held.add(now, pages * mmap.PAGESIZE)
                one.type_name = f"ndarray, {pages / where[1]:.0%} {TOUCHED}"
                self.known[key] = one


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
        places = range(first, first + pages, max(1, pages // _SAMPLES))
        read = (int.from_bytes(os.pread(pagemap, 8, 8 * at), sys.byteorder) for at in places)
        return pages * sum(one & _OWN == _OWN for one in read) / len(places)
    finally:
        os.close(pagemap)
