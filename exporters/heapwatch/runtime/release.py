"""Returns memory to the system: unreachable objects, the CUDA cache, free memory of malloc."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from heapwatch.measure.process.memory import ResidentMemory


class Released(NamedTuple):
    """Freed bytes by part: of resident memory, and for `cuda_cache_bytes` of the device.

    An unavailable part is None. A negative value means that other threads allocated memory meanwhile.
    """

    collected_objects: int
    garbage_bytes: int
    cuda_cache_bytes: int | None
    allocator_bytes: int | None


def release() -> Released:
    """Collect garbage, empty the CUDA cache if torch uses CUDA, and trim glibc's heap.

    It includes a full garbage collection, so call it rarely: between generations, or in a cleanup.
    """
    resident = ResidentMemory()
    try:
        before = resident.read()
        collected = gc.collect()
        garbage = before - resident.read()
        return Released(collected, garbage, empty_cuda_cache(), _trimmed(resident))
    finally:
        resident.close()


def empty_cuda_cache() -> int | None:
    """Return torch's unused cached blocks to the device; returns the freed bytes, None without CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    devices = range(torch.cuda.device_count())
    before = sum(torch.cuda.memory_reserved(device) for device in devices)
    torch.cuda.empty_cache()
    return int(before - sum(torch.cuda.memory_reserved(device) for device in devices))


def trim_allocator() -> bool | None:
    """Return malloc's free pages to the system; whether there were any, None without glibc."""
    trim = _malloc_trim()
    return None if trim is None else bool(trim(0))


def _trimmed(resident: ResidentMemory) -> int | None:
    before = resident.read()
    return None if trim_allocator() is None else before - resident.read()


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim  # type: ignore[no-any-return]
