"""Returns memory to the system: unreachable objects, the CUDA cache, free memory of malloc."""

from __future__ import annotations

import ctypes
import gc
import sys


def release() -> None:
    """Collect garbage, empty the CUDA cache if torch uses CUDA, and trim glibc's heap.

    It includes a full garbage collection, so call it rarely: between generations, or in a cleanup.
    """
    gc.collect()
    empty_cuda_cache()
    trim_allocator()


def empty_cuda_cache() -> None:
    """Return torch's unused cached blocks to the device, if the program uses CUDA."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def trim_allocator() -> None:
    """Return malloc's free pages to the system, where it is glibc's."""
    if sys.platform.startswith("linux") and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
