"""The memory of arrays and tensors, without importing numpy or torch."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any, NamedTuple

from heapwatch.measure.memory import UNREAD, MemoryBlock, MemoryPlace, classes

_SMALL = 65536
_MOST_TEXTS = 10_000  # of an array of texts, measured one by one


class _Array(NamedTuple):
    """Readers of numpy's own attributes, which a subclass may override."""

    base: Any
    dtype: Any
    nbytes: Any
    flags: Any
    ravel: Any


@lru_cache(maxsize=1)
def _numpy() -> _Array:
    array = sys.modules["numpy"].ndarray
    base, dtype, nbytes, flags = (
        array.__dict__[name].__get__ for name in ("base", "dtype", "nbytes", "flags")
    )
    return _Array(base, dtype, nbytes, flags, array.ravel)


def owned_bytes(array: Any) -> int:
    """Bytes of an ndarray's data; 0 if another object owns them."""
    numpy = _numpy()
    return int(numpy.nbytes(array)) if numpy.flags(array).owndata else 0


def array_data(array: Any) -> tuple[int, int]:
    """Key and bytes of the memory that an ndarray owns.

    A view owns none (key 0): the bytes are those of its base, counted there once for all its views.
    """
    numpy = _numpy()
    if numpy.base(array) is None and not numpy.dtype(array).hasobject:
        return array_address(array), numpy.nbytes(array)
    return 0, 0


def array_address(array: Any) -> int:
    """Address of an ndarray's data: the first field of numpy's `PyArrayObject` (numpy/ndarraytypes.h).

    Ten times as fast as `array.ctypes.data`, which makes an object for it.
    """
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def array_holds(array: Any) -> list[Any]:
    """The object whose memory an ndarray is a view of."""
    base = _numpy().base(array)
    return [] if base is None else [base]


def array_view(array: Any) -> MemoryBlock:
    """The memory that an ndarray shows, where the length of the owner's memory is not known."""
    return MemoryBlock(array_address(array), int(_numpy().nbytes(array)), "heap")


def array_items(array: Any) -> list[Any]:
    """The objects of an array of objects, in a list made for the purpose; of texts the memory they lie in."""
    numpy = _numpy()
    dtype = numpy.dtype(array)
    if not dtype.hasobject or numpy.base(array) is not None:
        return []
    if type(dtype).__name__ == "StringDType":
        return _texts(array)
    return [numpy.ravel(array).tolist()]


def _texts(array: Any) -> list[Any]:
    """The entries of an array of `StringDType`, and the texts of more than 15 bytes in its arena.

    numpy does not report what it allocated for them, which may be a quarter more.
    """
    flat = _numpy().ravel(array)
    step = -(-len(flat) // _MOST_TEXTS) or 1
    lengths = [len(text.encode()) for text in flat[::step].tolist() if type(text) is str]
    texts = step * sum(length + (8 if length > 255 else 1) for length in lengths if length > 15)
    arena = MemoryBlock(id(array) + 1, int(_numpy().nbytes(array)) + texts, "heap", slack=texts // 4 + 64)
    return [arena] if step == 1 else [arena, UNREAD]


def tensor_parts(tensor: Any) -> list[Any]:
    """The memory of a tensor, or the tensors that a sparse or wrapped one consists of; and its gradient.

    Storages inside an autograd graph cannot be reached from Python and count as unread.
    """
    torch = sys.modules["torch"]
    if not tensor.is_leaf:
        parts: list[Any] = [UNREAD]
    else:
        parts = [] if tensor.grad is None else [tensor.grad]
    if hasattr(type(tensor), "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return parts + [getattr(tensor, name) for name in names]
    if issubclass(type(tensor), classes("tensordict", "MemoryMappedTensor")):
        return [*parts, MemoryBlock(tensor.data_ptr(), tensor.nbytes, "mapped", 1)]
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
        place: MemoryPlace = "heap" if tensor.device.type == "cpu" else "gpu"
        return [*parts, MemoryBlock(tensor.data_ptr(), tensor.nbytes, place, 1)]
    return [*parts, storage_memory(tensor.untyped_storage())]


def storage_memory(storage: Any) -> MemoryBlock:
    """The memory of a torch `UntypedStorage`."""
    place: MemoryPlace
    if storage.device.type != "cpu":
        place = "gpu"
    elif not storage.is_shared():
        place = "heap"
    else:
        place = "shared" if getattr(storage, "filename", None) is None else "mapped"
    return MemoryBlock(storage.data_ptr(), storage.nbytes(), place, _holders(storage._cdata) - 1)


def _holders(storage_address: int) -> int:
    """References to a storage."""
    return int(sys.modules["torch"]._C._storage_Use_Count(storage_address))
