"""Functions of torch without a public name, read from the `torch` that the program has imported.

Public functions would run code of the program (`__torch_function__`), or make objects that stay with a
tensor. `tests/exporters/measure/introspection/test_torch_internals.py` fails where a version of torch
differs; it was last run with 2.13.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class TorchInternals(NamedTuple):
    """Readers of a tensor, and of a storage or its address. All are C functions, as `read_alone` needs them.

    Attributes:
        address: address of a tensor's storage, not followed.
        data_address: address of a tensor's first element.
        storage_object: the Python object of a tensor's storage, which is made and stays with it.
        gradient: the gradient of a leaf; None without one.
        operation: the operation that made a tensor; None without one.
        references: number of references that C code has to the storage at an address.
        file_name: name of the file in which a storage lies; None without one.

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
    """Whether the calling thread runs Python code that torch called, or would call code of the program.

    While one thread runs a function of a graph, others may run the rest of the graph.
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
    except AttributeError:  # a version of torch that does not tell, or one that is being imported
        return True
