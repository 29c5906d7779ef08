"""C functions that read torch tensors and storages, from the `torch` that the program has imported.

The functions of `torch.Tensor` may run code of the program (`__torch_function__`); these do not.
`tests/exporters/measure/introspection/test_torch_internals.py` checks them; it last passed with 2.13.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class TorchInternals(NamedTuple):
    """C functions that read a tensor, a storage or its address. See `exclusive_reads.read_alone`.

    Attributes:
        address: address of the C++ object of a tensor's storage; no memory is read there.
        data_address: address of a tensor's first element.
        storage_object: the Python object of a tensor's storage, which the storage keeps once it is made.
        gradient: the gradient of a leaf; None without one.
        operation: the operation that made a tensor; None without one.
        references: reference count of the C++ storage at an address.
        file_name: path of the file that a storage maps; None without one.

    """

    address: Callable[[Any], int]
    data_address: Callable[[Any], int]
    storage_object: Callable[[Any], Any]
    gradient: Callable[[Any], Any]
    operation: Callable[[Any], Any]
    references: Callable[[int], int]
    file_name: Callable[[Any], str | None]


def internals() -> TorchInternals:
    """The readers of the imported torch."""
    library = sys.modules["torch"]._C
    tensor = library.TensorBase
    return TorchInternals(
        address=library._storage_address,
        data_address=tensor.data_ptr,
        storage_object=tensor.untyped_storage,
        gradient=tensor.grad.__get__,
        operation=tensor.grad_fn.__get__,
        references=library._storage_Use_Count,
        file_name=library.StorageBase._get_filename,
    )


def in_an_operation() -> bool:
    """Whether torch has called Python code in this thread, or a mode of the program would see its calls.

    During a backward pass, other threads may change tensors without holding the lock.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "_C"):
        return False
    try:
        library = torch._C
        return bool(
            library._current_graph_task_id() != -1
            or library._len_torch_function_stack()
            or library._len_torch_dispatch_stack()
        )
    except AttributeError:  # torch lacks these functions, or is being imported
        return True
