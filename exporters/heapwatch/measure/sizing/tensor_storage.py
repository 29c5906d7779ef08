"""Memory of arrays and tensors, and autograd graphs of tensors, without importing numpy or torch.

Torch numbers the operations of a thread; these numbers show which operations a graph holds.
"""

from __future__ import annotations

import ctypes
import heapq
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any
from weakref import ref

from heapwatch.measure.introspection.containers import array_owner, is_plain_tensor, object_items
from heapwatch.measure.introspection.exclusive_reads import Ask, first_answer, read_alone
from heapwatch.measure.introspection.layout import Layout
from heapwatch.measure.introspection.torch_internals import internals
from heapwatch.measure.sizing.foreign import UNREAD, MemoryBlock, MemoryPlace

_SMALL = 65536
_MOST_WANTED = 200  # storages read at once: some 0.1 ms
_MOST_OPERATIONS = 2000
_LEAF = 2**63  # parameters and inputs are numbered above all operations


@lru_cache(maxsize=1)
def _numpy() -> Any:
    """Readers of numpy's own attributes, which a subclass may override."""
    array = sys.modules["numpy"].ndarray
    readers = {name: array.__dict__[name].__get__ for name in ("base", "dtype", "nbytes", "flags")}
    return SimpleNamespace(**readers)


def owned_bytes(array: Any) -> int:
    """Bytes of an ndarray's data; 0 if another object owns them."""
    numpy = _numpy()
    return int(numpy.nbytes(array)) if numpy.flags(array).owndata else 0


def memory_key(obj: Any, layout: Layout) -> int:
    """What an array or a tensor has in common with all views of its memory; 0 for other objects."""
    if layout.kind == "array":
        owner = array_owner(obj)
        base = _numpy().base(owner)
        return array_address(owner) if base is None else id(base)
    if layout.kind == "tensor" and is_plain_tensor(obj):
        try:
            return internals().address(obj)
        except RuntimeError:  # sparse, or a wrapper of torch.func
            return 0
    return 0


def array_address(array: Any) -> int:
    """Address of an ndarray's data: the first field of numpy's `PyArrayObject` (numpy/ndarraytypes.h).

    Ten times as fast as `array.ctypes.data`, which makes an object for it.
    """
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def array_base(array: Any) -> Any:
    """The object whose memory an ndarray is a view of; None if it is no view."""
    return _numpy().base(array)


def array_memory(array: Any) -> list[Any]:
    """The memory that an ndarray shows: of objects a list of them, of texts what is known."""
    numpy = _numpy()
    dtype = numpy.dtype(array)
    if not dtype.hasobject:
        return [MemoryBlock(array_address(array), int(numpy.nbytes(array)), "heap")]
    if type(dtype).__name__ == "StringDType":
        # numpy has a lock of its own for long ones, and their memory is not read.
        return [MemoryBlock(id(array) + 1, int(numpy.nbytes(array)), "heap"), UNREAD]
    items = object_items(array)
    return [UNREAD] if items is None else [items]


class Storages:
    """Storages of tensors that only the thread that changes them can read; filled by `read`.

    Valid for one measurement: the address of a freed storage may be reused.

    Attributes:
        known: by the address of the storage.

    """

    def __init__(self) -> None:
        self.known: dict[int, MemoryBlock] = {}
        self._wanted: dict[int, ref[Any]] = {}

    @property
    def wanted(self) -> bool:
        """Whether there are storages of which only a part is known."""
        return bool(self._wanted)

    def want(self, tensor: Any) -> None:
        """Have the storage of a tensor read by the next `read`."""
        if len(self._wanted) < _MOST_WANTED:
            self._wanted[internals().address(tensor)] = ref(tensor)

    def read(self, ask: Ask) -> bool:
        """Read the requested storages in the thread that changes the tensors; returns whether it answered."""
        tensors, self._wanted = list(self._wanted.values()), {}
        torch = internals()
        columns = (torch.address,), (torch.storage_object,)
        result = first_answer(partial(read_alone, tensors, *columns), ask)
        for address, storage in result or ():
            self.known[address] = storage_memory(storage)
        return result is not None


def tensor_parts(tensor: Any, storages: Storages) -> list[Any]:
    """The memory of a tensor and its gradient.

    Sparse tensors, and storages inside an autograd graph, count as unread. What a wrapper is
    made of is found among its attributes.
    """
    torch = sys.modules["torch"]
    if hasattr(type(tensor), "__tensor_flatten__"):
        return []
    parts: list[Any] = []
    slack = 0
    if not tensor.is_leaf:
        parts.append(UNREAD)
    elif tensor.requires_grad:
        gradient = read_alone([tensor], (internals().gradient,))
        if gradient is None:
            slack = int(tensor.nbytes)  # it is as large as the tensor, if there is one
        else:
            parts += [part for (part,) in gradient if part is not None]
    if tensor.layout is not torch.strided:
        return [*parts, UNREAD]
    if tensor.device.type == "meta":
        return parts
    address = internals().address(tensor)
    memory = _memory_alone(tensor) or storages.known.get(address)
    if memory is None:
        storages.want(tensor)
        parts.append(UNREAD)
        memory = MemoryBlock(address, int(tensor.nbytes), _place(tensor))
    return [*parts, replace(memory, slack=memory.slack + slack) if slack else memory]


def _memory_alone(tensor: Any) -> MemoryBlock | None:
    """All the memory that a tensor keeps alive; None while another thread may be changing it.

    Asking for a storage makes a Python object of 64 bytes that stays with it: not for small tensors which
    have one to themselves.
    """
    torch = internals()
    if tensor.nbytes < _SMALL and tensor.storage_offset() == 0 and tensor.is_contiguous():
        values = read_alone([tensor], (torch.address, torch.references), (torch.data_address,))
        if values is None:
            return None
        ((references, address),) = values
        if references == 1:
            return MemoryBlock(address, int(tensor.nbytes), _place(tensor), 1)
    storages = read_alone([tensor], (torch.storage_object,))
    return None if storages is None else storage_memory(storages[0][0])


def _place(tensor: Any) -> MemoryPlace:
    return "heap" if tensor.device.type == "cpu" else "gpu"


def storage_memory(storage: Any) -> MemoryBlock:
    """The memory of a torch `UntypedStorage`, to which the caller refers."""
    torch = internals()
    place: MemoryPlace
    if storage.device.type != "cpu":
        place = "gpu"
    elif not storage.is_shared():
        place = "heap"
    else:
        filename = read_alone([storage], (torch.file_name,))
        place = "mapped" if filename and filename[0][0] is not None else "shared"
    references = torch.references(storage._cdata) - 1
    return MemoryBlock(storage.data_ptr(), storage.nbytes(), place, references)


def has_graph(tensor: Any) -> bool:
    """Whether a tensor keeps the operations that made it; False for a class that the program defines."""
    torch = sys.modules.get("torch")
    if torch is None or (type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter):
        return False
    return not tensor.is_leaf


def read_graphs(tensors: Sequence[ref[Any]]) -> list[tuple[int, Any]] | None:
    """Tensors' ids and the operations that made them; None while another thread may change them.

    An operation itself does not change any more, and may be asked by any thread that refers to it.
    """
    return read_alone(tensors, (id,), (internals().operation,))


def number_of(operation: Any) -> int:
    """Torch numbers the operations of a thread in the order of their creation."""
    number = getattr(operation, "_sequence_nr", None)
    return _LEAF if number is None else int(number())


def holds_operation(first: Any, after: int, until: int) -> bool:
    """Whether the graph of an operation holds one with a number above `after` and not above `until`.

    Looks at 2000 operations at most, the oldest first. In a graph that each step of training makes longer,
    this goes back one step after the other.
    """
    nodes = {id(first): first}
    waiting = [(number_of(first), id(first))]
    for _ in range(_MOST_OPERATIONS):
        if not waiting:
            break
        number, key = heapq.heappop(waiting)
        if after < number <= until:
            return True
        for node, _ in nodes[key].next_functions:
            if node is not None and id(node) not in nodes and (number := number_of(node)) < _LEAF:
                nodes[id(node)] = node
                heapq.heappush(waiting, (number, id(node)))
    return False
