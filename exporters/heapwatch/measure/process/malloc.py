"""Statistics of the allocators: glibc's `mallinfo2`, and CPython's block count."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33 and later: mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


@cache
def _mallinfo2() -> Callable[[], _MallocInfo] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return None
    function.restype = _MallocInfo
    return function  # type: ignore[no-any-return]


def malloc_bytes() -> tuple[int | None, int | None]:
    """Bytes that malloc has handed out, and freed bytes that it keeps; None if there is no `mallinfo2`.

    Takes 0.3 us on a new heap and 19 ms with half a million free chunks, without the GIL.
    """
    read = _mallinfo2()
    if read is None:
        return None, None
    info = read()
    # Mapped blocks (hblkhd) are beside the arenas, not in uordblks.
    return info.uordblks + info.hblkhd, info.fordblks


def python_blocks() -> int | None:
    """Blocks that Python's allocator of small objects has handed out."""
    count = getattr(sys, "getallocatedblocks", None)
    return None if count is None else int(count())
