"""What torch, JAX and CuPy say of the GPU memory that they hold; none is imported or initialised."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_GPU_PLATFORMS = ("gpu", "cuda", "rocm")


@dataclass(frozen=True, slots=True)
class Pool:
    """The memory that one allocator of this process holds on one device, in bytes.

    Attributes:
        in_use: handed out to tensors or arrays.
        held: taken from the device, `in_use` included.
        unusable: of what is held and not in use, what lies between blocks in use: it can neither be given
            back nor serve a larger block. None where the allocator does not report it.
        retries: allocations that succeeded only after all cached memory was given back; None where unknown.

    """

    in_use: int
    held: int
    unusable: int | None = None
    retries: int | None = None


def initialised_cuda() -> Any:
    """`torch.cuda` of a program that uses it, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def torch_pools() -> dict[int, Pool]:
    """Torch's caching allocator by device, as torch numbers them. Nothing waits for the device."""
    cuda = initialised_cuda()
    pools = {}
    for index in range(cuda.device_count() if cuda else 0):
        # One reading, not memory_allocated() and memory_reserved(): allocations go on meanwhile.
        statistics = cuda.memory_stats(index)
        in_use = statistics.get("allocated_bytes.all.current", 0)
        held = statistics.get("reserved_bytes.all.current", 0)
        native = cuda.get_allocator_backend() == "native"  # others leave the rest at zero
        pools[index] = Pool(
            in_use,
            held,
            statistics.get("inactive_split_bytes.all.current") if native else None,
            statistics.get("num_alloc_retries") if native else None,
        )
    return pools


def jax_programs() -> int | None:
    """Compiled programs that JAX keeps, on all platforms; None where no backend was made yet."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    clients = list(getattr(bridge, "_backends", {}).values())
    return sum(len(client.live_executables()) for client in clients) if clients else None


def jax_pools() -> dict[int, Pool]:
    """JAX's allocators by the number of the CUDA device, where a backend for GPUs was made already."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    pools = {}
    for client in list(getattr(bridge, "_backends", {}).values()):
        if client.platform not in _GPU_PLATFORMS:
            continue
        for device in client.local_devices():
            statistics = device.memory_stats()
            if statistics and "bytes_in_use" in statistics:
                in_use = statistics["bytes_in_use"]
                index = getattr(device, "local_hardware_id", None)
                pools[device.id if index is None else index] = Pool(
                    in_use, statistics.get("pool_bytes") or in_use
                )
    return pools


def cupy_pools() -> dict[int, Pool]:
    """CuPy's memory pools by device: the default one, and another that the program set as its allocator.

    Pools of managed memory are left out: it need not be on the device.
    """
    cupy: Any = sys.modules.get("cupy")
    kind = getattr(sys.modules.get("cupy.cuda.memory"), "MemoryPool", None)
    pools: dict[int, Pool] = {}
    if kind is None or not hasattr(cupy, "get_default_memory_pool"):  # it is being imported
        return pools
    allocator = getattr(cupy.cuda.get_allocator(), "__self__", None)
    distinct = {id(pool): pool for pool in (cupy.get_default_memory_pool(), allocator)}
    for pool in distinct.values():
        for index, one in _of_each_device(pool) if isinstance(pool, kind) else ():
            if not any(part is cupy.cuda.malloc_managed for part in gc.get_referents(one)):
                in_use, before = one.used_bytes(), pools.get(index, Pool(0, 0))
                # Between the two readings blocks may be given back.
                held = max(in_use, one.total_bytes())
                pools[index] = Pool(before.in_use + in_use, before.held + held)
    return pools


def _of_each_device(pool: Any) -> Iterator[tuple[int, Any]]:
    """The pools that a `MemoryPool` of CuPy has made, by device.

    Asked through it, the current device alone is counted, a change of device makes a CUDA context where there
    is none, and where the driver fails CuPy 13 answers zero. What it keeps answers without the driver: a dict
    by device, or since CuPy 14 a tuple.
    """
    for kept in gc.get_referents(pool):
        if isinstance(kept, dict):
            yield from list(kept.items())
        elif isinstance(kept, tuple):
            yield from enumerate(kept)


POOLS: dict[str, Callable[[], dict[int, Pool]]] = {
    "torch": torch_pools,
    "jax": jax_pools,
    "cupy": cupy_pools,
}
