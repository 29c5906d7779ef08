"""Where the bytes of arrays and tensors are, without importing numpy or torch."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any


class Place(Enum):
    """Where bytes live: only those on the heap are this process's alone and stay until freed."""

    HEAP = "heap"
    GPU = "gpu"
    MAPPED = "mapped"  # file-backed pages (np.memmap): the kernel takes them back under pressure
    SHARED = "shared"  # shared memory: one copy for several processes


def classes(module: str, *names: str) -> tuple[type, ...]:
    """The named classes of `module` if the program has imported it; never imports it itself."""
    loaded = sys.modules.get(module)
    found = (getattr(loaded, name, None) for name in names)
    return tuple(cls for cls in found if isinstance(cls, type))


def array_data(array: Any) -> tuple[int, int, Place]:
    """Key, bytes and place of the memory an ndarray brings along.

    A view brings none (key 0): the bytes are those of its base, counted there once for all its views.
    """
    base = array.base
    if isinstance(base, mmap.mmap):
        in_file = isinstance(array, classes("numpy", "memmap"))
        return id(base), len(base), Place.MAPPED if in_file else Place.SHARED
    if base is None and not array.dtype.hasobject:
        return array.ctypes.data, array.nbytes, Place.HEAP
    return 0, 0, Place.HEAP


def array_holds(array: Any) -> list[Any]:
    """What an ndarray keeps alive: the object whose memory it is a view of."""
    return [] if array.base is None or isinstance(array.base, mmap.mmap) else [array.base]


def array_items(array: Any) -> list[Any]:
    """The objects of an array of objects, in a list made for the purpose."""
    return [array.ravel().tolist()] if array.dtype.hasobject and array.base is None else []


def tensor_holds(tensor: Any) -> list[Any]:
    """What a tensor's Python object keeps alive beside its memory: its gradient and attributes."""
    attributes = getattr(tensor, "__dict__", None)
    gradient = tensor.grad if tensor.is_leaf else None
    return [part for part in (attributes, gradient) if part is not None]


def tensor_memory(tensor: Any) -> list[Any]:
    """The storage of a tensor, or the tensors that a sparse or wrapped one consists of.

    Storages saved inside an autograd graph cannot be reached from Python and are not counted.
    """
    torch = sys.modules["torch"]
    if hasattr(type(tensor), "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return [getattr(tensor, name) for name in names]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [] if tensor.device.type == "meta" else [tensor.untyped_storage()]


def storage_data(storage: Any) -> tuple[int, int, Place]:
    """Address, bytes and place of a torch `UntypedStorage`; every tensor on it shares them."""
    if storage.device.type == "meta":
        return 0, 0, Place.HEAP
    if storage.device.type != "cpu":
        return storage.data_ptr(), storage.nbytes(), Place.GPU
    if not storage.is_shared():
        return storage.data_ptr(), storage.nbytes(), Place.HEAP
    in_file = getattr(storage, "filename", None) is not None
    return storage.data_ptr(), storage.nbytes(), Place.MAPPED if in_file else Place.SHARED


def storage_references(storage: Any) -> int:
    """Tensors that hold a torch storage; 1 where this torch cannot say."""
    count: Callable[[int], int] | None = getattr(sys.modules["torch"]._C, "_storage_Use_Count", None)
    return count(storage._cdata) - 1 if count else 1
