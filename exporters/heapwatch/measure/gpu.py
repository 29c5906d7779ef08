"""GPU memory: readings of the driver (NVML), pools of torch and JAX, and their division into parts."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

log = logging.getLogger("heapwatch")

# An index as NVML counts, or a UUID, of a MIG instance too.
DeviceName = int | str
_GPU_PLATFORMS = ("gpu", "cuda", "rocm")


class DeviceMemory(NamedTuple):
    """The memory of a device in bytes: `total` is the sum of what is used, free and kept by the driver."""

    total: int
    used: int
    free: int
    reserved: int


class NvmlSession:
    """A connection to NVML that is reopened after a driver restart.

    Args:
        library: the module `pynvml`; imported if it is not given.
        environment: the environment with `CUDA_VISIBLE_DEVICES`.

    """

    def __init__(self, library: Any = None, environment: Mapping[str, str] = os.environ) -> None:
        self.library = library
        self._environment = environment
        self._connected = False
        self._has_connected = False
        self._missing = False

    def devices(self) -> list[DeviceName]:
        """The devices that this process may use, in CUDA's order; none without library, driver or GPU.

        Raises:
            NVMLError: the library worked before and does not now.

        """
        if not self._connect():
            return []
        count = int(self.library.nvmlDeviceGetCount())
        return visible_devices(self._environment.get("CUDA_VISIBLE_DEVICES"), count)

    def handle(self, name: DeviceName) -> Any:
        """The library's handle of a device.

        Raises:
            NVMLError: the device is lost, or unknown.

        """
        if isinstance(name, int):
            return self.library.nvmlDeviceGetHandleByIndex(name)
        return self.library.nvmlDeviceGetHandleByUUID(name)

    def memory(self, handle: Any) -> DeviceMemory:
        """The memory of a device, as nvidia-smi reports it.

        Raises:
            NVMLError: the device is lost, or does not report it.

        """
        info = self.library.nvmlDeviceGetMemoryInfo(handle, self.library.nvmlMemory_v2)
        return DeviceMemory(info.total, info.used, info.free, info.reserved)

    def in_cuda_order(self) -> list[DeviceName]:
        """As `devices`, by UUID if torch reports it: CUDA sorts devices by speed, NVML by bus.

        Raises:
            NVMLError: the library worked before and does not now.

        """
        devices, cuda = self.devices(), initialised_cuda()
        if cuda is None or not devices or any(isinstance(name, str) for name in devices):
            return devices
        properties = map(cuda.get_device_properties, range(cuda.device_count()))
        uuids = [getattr(device, "uuid", None) for device in properties]
        return [f"GPU-{uuid}" for uuid in uuids] if all(uuids) else devices

    def disconnect(self) -> None:
        """Close the connection: the next reading opens a new one."""
        if not self._connected:
            return
        self._connected = False
        try:
            self.library.nvmlShutdown()
        except self.library.NVMLError:
            log.debug("nvmlShutdown failed")

    def _connect(self) -> bool:
        if self._connected or self._missing:
            return self._connected
        try:
            self.library = self.library or importlib.import_module("pynvml")
        except ImportError:
            return self._is_missing("nvidia-ml-py is not installed (pip install 'heapwatch[gpu]')")
        try:
            self.library.nvmlInit()
        except self.library.NVMLError as error:
            if self._has_connected:
                raise
            return self._is_missing(str(error))
        self._connected = self._has_connected = True
        return True

    def _is_missing(self, reason: str) -> bool:
        self._missing = True
        log.debug("no series of whole GPUs: %s", reason)  # most machines have none
        return False


def visible_devices(setting: str | None, count: int) -> list[DeviceName]:
    """The devices that `CUDA_VISIBLE_DEVICES` selects of `count` devices, in its order.

    Like CUDA, it ignores everything after the first entry that is no device.
    """
    if setting is None:
        return list(range(count))
    names: list[DeviceName] = []
    for entry in map(str.strip, setting.split(",")):
        if entry.startswith(("GPU-", "MIG-")):
            names.append(entry)
        elif entry.isdecimal() and int(entry) < count:
            names.append(int(entry))
        else:
            break
    return names


@dataclass(frozen=True, slots=True)
class Pool:
    """The memory that one allocator of this process holds on one device, in bytes.

    Attributes:
        in_use: handed out to tensors or arrays.
        held: taken from the device, `in_use` included.
        unusable: of what is held and not in use, what lies between blocks in use: it can neither be given
            back nor serve a larger block. None where the allocator does not report it.

    """

    in_use: int
    held: int
    unusable: int | None = None


def initialised_cuda() -> Any:
    """`torch.cuda` of a program that uses it, else None. No library is imported or initialised here."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


@lru_cache(maxsize=1)
def _driver() -> Any:
    """The CUDA driver that the program has loaded.

    Raises:
        OSError: it has not loaded one.

    """
    return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)


_this_thread = threading.local()
_RELAXED = 2


def allow_capture() -> None:
    """Exempt this thread from the restrictions of CUDA graph capture; call it in each round of a thread.

    During a capture, CUDA ends it if any thread makes certain calls, such as freeing an older graph. This
    thread makes none itself, but holds objects of the program briefly, and frees those that the program has
    dropped meanwhile. The driver's `cuThreadExchangeStreamCaptureMode` exempts a thread.
    """
    if getattr(_this_thread, "is_exempt", False) or not hasattr(os, "RTLD_NOLOAD"):
        return
    try:
        exchange = _driver().cuThreadExchangeStreamCaptureMode
    except (OSError, AttributeError):
        return  # the program has not loaded it, or only begins to
    _this_thread.is_exempt = exchange(ctypes.byref(ctypes.c_int(_RELAXED))) == 0


def torch_pools() -> dict[int, Pool]:
    """Torch's caching allocator by device, as torch numbers them. Nothing waits for the device."""
    cuda = initialised_cuda()
    pools = {}
    for index in range(cuda.device_count() if cuda else 0):
        # One reading, not memory_allocated() and memory_reserved(): allocations go on meanwhile.
        statistics = cuda.memory_stats(index)
        in_use = statistics.get("allocated_bytes.all.current", 0)
        reserved = statistics.get("reserved_bytes.all.current", 0)
        native = cuda.get_allocator_backend() == "native"  # others leave the rest at zero
        pools[index] = Pool(
            in_use,
            reserved,
            statistics.get("inactive_split_bytes.all.current") if native else None,
        )
    return pools


def free_bytes(session: NvmlSession) -> dict[int, int]:
    """Free bytes of each device, by CUDA's number; empty without NVML."""
    try:
        names = session.in_cuda_order()
        return {index: session.memory(session.handle(name)).free for index, name in enumerate(names)}
    except Exception:
        session.disconnect()
        return {}


def _jax_clients() -> list[Any]:
    """JAX's connections to its platforms, without making one: `jax.devices()` would."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return list(getattr(bridge, "_backends", {}).values())


def jax_programs() -> int | None:
    """Compiled programs that JAX keeps, on all platforms; None where no backend was made yet."""
    clients = _jax_clients()
    return sum(len(client.live_executables()) for client in clients) if clients else None


def jax_pools() -> dict[int, Pool]:
    """JAX's allocators by the number of the CUDA device, where a backend for GPUs was made already."""
    pools = {}
    for client in _jax_clients():
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


POOLS: dict[str, Callable[[], dict[int, Pool]]] = {
    "torch": torch_pools,
    "jax": jax_pools,
}


@dataclass(frozen=True, slots=True)
class Processes:
    """Memory of the processes that the driver lists on a device, in bytes.

    Attributes:
        own: of this process; None where it is not listed.
        workers: of its children.
        others: of all other processes.

    """

    own: int | None
    workers: int = 0
    others: int = 0


class GpuParts:
    """Divides the memory of one device into parts.

    The part `context` is the least memory of this process outside its pools so far: the CUDA context, loaded
    kernels, and pools that existed from the start.
    """

    def __init__(self) -> None:
        self._context: int | None = None

    def divide(
        self, memory: DeviceMemory, pools: Mapping[str, Pool], processes: Processes | None
    ) -> dict[str, int]:
        """Bytes by part, from those of the device and of each library's pool on it.

        Empty where the readings contradict each other, which are not taken at one moment.

        `unattributed` is in use, and no pool and no listed process accounts for it: what the driver needs for
        contexts, and processes that are hidden, as in a container.
        """
        used = memory.used
        parts = {"free": memory.total - used - memory.reserved}
        if memory.reserved:
            parts["driver"] = memory.reserved
        for library, pool in pools.items():
            parts[f"{library}_in_use"] = pool.in_use
            parts[f"{library}_cached"] = pool.held - pool.in_use
        pool_bytes = sum(pool.held for pool in pools.values())
        if processes is not None and processes.own is not None and processes.own >= pool_bytes:
            outside_pools = processes.own - pool_bytes
            unattributed = used - processes.own - processes.workers - processes.others
            if unattributed >= 0:
                if processes.own:
                    self._context = (
                        outside_pools if self._context is None else min(self._context, outside_pools)
                    )
                    parts["context"] = self._context
                    parts["other_pools"] = outside_pools - self._context
                parts["workers"] = processes.workers
                parts["other_processes"] = processes.others
                parts["unattributed"] = unattributed
                return parts
        parts["unattributed"] = used - pool_bytes
        return parts if parts["unattributed"] >= 0 else {}
