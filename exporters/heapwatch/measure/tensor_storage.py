"""Where the bytes of arrays and tensors are, without importing numpy or torch."""

from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import dataclass
from typing import Any, Literal

_SMALL = 65536


# Where bytes live: only those on the heap are this process's alone and stay until freed. File-backed pages
# (mapped) the kernel takes back under pressure; of shared memory there is one copy for several processes.
Place = Literal["heap", "gpu", "mapped", "shared"]


def classes(module: str, *names: str) -> tuple[type, ...]:
    """The named classes of `module` if the program has imported it; never imports it itself."""
    loaded = sys.modules.get(module)
    found = (getattr(loaded, name, None) for name in names)
    return tuple(cls for cls in found if isinstance(cls, type))


def array_data(array: Any) -> tuple[int, int, Place]:
    """Key, bytes and place of the memory that an ndarray owns.

    A view owns none (key 0): the bytes are those of its base, counted there once for all its views.
    """
    base = array.base
    if base is None and not array.dtype.hasobject:
        return array_address(array), array.nbytes, "heap"
    if isinstance(base, mmap.mmap):
        in_file = isinstance(array, classes("numpy", "memmap"))
        return id(base), len(base), "mapped" if in_file else "shared"
    return 0, 0, "heap"


def array_address(array: Any) -> int:
    """Address of an ndarray's data: the first field of numpy's `PyArrayObject` (numpy/ndarraytypes.h).

    Ten times as fast as `array.ctypes.data`, which makes an object for it.
    """
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def array_holds(array: Any) -> list[Any]:
    """The object whose memory an ndarray is a view of."""
    return [] if array.base is None or isinstance(array.base, mmap.mmap) else [array.base]


def array_items(array: Any) -> list[Any]:
    """The objects of an array of objects, in a list made for the purpose."""
    return [array.ravel().tolist()] if array.dtype.hasobject and array.base is None else []


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """The memory that tensors share: its address and bytes, and how many tensors hold it."""

    address: int
    nbytes: int
    place: Place
    references: int


def tensor_parts(tensor: Any) -> list[Any]:
    """The memory of a tensor, or the tensors that a sparse or wrapped one consists of; and its gradient.

    Storages saved inside an autograd graph cannot be reached from Python and are not counted.
    """
    torch = sys.modules["torch"]
    parts: list[Any] = [tensor.grad] if tensor.is_leaf and tensor.grad is not None else []
    if hasattr(type(tensor), "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return parts + [getattr(tensor, name) for name in names]
    if issubclass(type(tensor), classes("tensordict", "MemoryMappedTensor")):
        return [*parts, TensorMemory(tensor.data_ptr(), tensor.nbytes, "mapped", 1)]
    if tensor.layout == torch.sparse_coo:
        return [*parts, tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [*parts, tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [*parts, tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    if tensor.device.type == "meta":
        return parts
    # Asking for a storage makes a Python object of 64 bytes that stays with it: not for small tensors which
    # have one to themselves.
    small = tensor.nbytes < _SMALL and tensor.storage_offset() == 0 and tensor.is_contiguous()
    if small and _holders(torch._C._storage_address(tensor)) == 1:
        place: Place = "heap" if tensor.device.type == "cpu" else "gpu"
        return [*parts, TensorMemory(tensor.data_ptr(), tensor.nbytes, place, 1)]
    return [*parts, storage_memory(tensor.untyped_storage())]


def storage_memory(storage: Any) -> TensorMemory:
    """The memory of a torch `UntypedStorage`."""
    place: Place
    if storage.device.type != "cpu":
        place = "gpu"
    elif not storage.is_shared():
        place = "heap"
    else:
        place = "shared" if getattr(storage, "filename", None) is None else "mapped"
    return TensorMemory(storage.data_ptr(), storage.nbytes(), place, _holders(storage._cdata) - 1)


def _holders(storage_address: int) -> int:
    """References to a storage."""
    return int(sys.modules["torch"]._C._storage_Use_Count(storage_address))
