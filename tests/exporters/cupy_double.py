"""CuPy's memory pools without a device: what `cupy_pools` sees of CuPy 13 and 14, and how they fail."""

import sys
import types
from typing import Any

import pytest

from heapwatch.measure.gpu import Pool


class DriverError(RuntimeError):
    """As `cupy.cuda.runtime.CUDARuntimeError`, where there is no driver."""


class DevicePool:
    """The pool of one device: it counts by itself, without the driver."""

    __slots__ = ("_allocator", "_pool")

    def __init__(self, pool: Pool, allocator: Any = None) -> None:
        self._pool, self._allocator = pool, allocator

    def used_bytes(self) -> int:
        """Bytes in use."""
        return self._pool.in_use

    def total_bytes(self) -> int:
        """Bytes held."""
        return self._pool.held


def by_device(*pools: Pool) -> dict[int, DevicePool]:
    """What CuPy 13 keeps."""
    return {index: DevicePool(pool) for index, pool in enumerate(pools)}


def in_order(*pools: Pool) -> tuple[DevicePool, ...]:
    """What CuPy 14 keeps."""
    return tuple(by_device(*pools).values())


def install(monkeypatch: pytest.MonkeyPatch, made: Any) -> Any:
    """Put a CuPy among the modules whose default pool keeps `made`; it notes who asks the driver."""
    cupy: Any = types.ModuleType("cupy")
    cupy.asked_driver = []

    def asks_driver(*arguments: Any) -> int:
        cupy.asked_driver.append(arguments)
        raise DriverError("cudaErrorInsufficientDriver")

    class MemoryPool:
        __slots__ = ("_pools",)

        def __init__(self, pools: Any) -> None:
            self._pools = pools

        malloc = used_bytes = total_bytes = asks_driver

    default = MemoryPool(made)
    memory = types.SimpleNamespace(MemoryPool=MemoryPool)
    cupy.get_default_memory_pool = lambda: default
    cupy.cuda = types.SimpleNamespace(
        memory=memory,
        get_allocator=lambda: default.malloc,
        malloc_managed=lambda size: asks_driver(size),
        Device=asks_driver,
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda.memory", memory)  # type: ignore[arg-type]
    return cupy
