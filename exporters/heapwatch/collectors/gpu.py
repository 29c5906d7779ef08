"""GPU memory and load: of this process from torch and JAX, of devices and the process tree from NVML."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.gpu import (
    POOLS,
    DeviceName,
    GpuParts,
    NvmlSession,
    Pool,
    Processes,
    jax_programs,
)
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.runtime.failures import Failures

Sample = tuple[str, list[str], float]

_FIELDS: dict[str, Callable[[Any, Any], float]] = {
    "trainer_gpu_utilization_ratio": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "trainer_gpu_temperature_celsius": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
        gpu, nvml.NVML_TEMPERATURE_GPU
    ),
    "trainer_gpu_power_watts": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
}

# The documentation, and the labels beside `device`.
_DOCUMENTATION = {
    "trainer_gpu_memory_allocated_bytes": ("Memory of live tensors of this process, by torch's allocator.",),
    "trainer_gpu_memory_reserved_bytes": ("Memory that torch's allocator holds, in use or cached.",),
    "trainer_gpu_memory_unusable_bytes": ("Reserved by torch, but stuck between blocks in use.",),
    "trainer_gpu_memory_used_bytes": ("Memory in use on the whole device, by all processes (NVML).",),
    "trainer_gpu_memory_total_bytes": ("Memory of the device (NVML).",),
    "trainer_gpu_utilization_ratio": ("Share of recent time in which a kernel ran on the device (NVML).",),
    "trainer_gpu_temperature_celsius": ("Temperature of the device (NVML).",),
    "trainer_gpu_power_watts": ("Power draw of the device (NVML).",),
    "trainer_gpu_process_memory_bytes": ("Memory of this process and its children on the device (NVML).",),
    "trainer_gpu_info": ("A device that this process may use.", "uuid", "name", "driver"),
    "trainer_gpu_memory_part_bytes": (
        "All memory of the device, by part; the parts add up to trainer_gpu_memory_total_bytes.",
        "part",
    ),
}

# These errors mean that the device or the driver is lost, and not only one field.
_FATAL = ("GpuIsLost", "Uninitialized", "DriverNotLoaded", "ResetRequired")


class GpuCollector:
    """Reads GPUs on the scrape thread. It never initialises CUDA and never imports torch.

    Fields that a device does not support, and lost devices, have no series. The next scrape reconnects to a
    lost driver. Each loss counts as a failure; an unsupported field does not. The label `device` is CUDA's
    device number in this process.
    """

    name = "gpu"

    def __init__(self, failures: Failures, tree: ProcessTree, session: NvmlSession | None = None) -> None:
        self._failures = failures
        self._tree = tree
        self._session = session or NvmlSession()
        self._broken = False
        self._parts: dict[str, GpuParts] = defaultdict(GpuParts)

    def collect(self) -> Iterable[Metric]:
        """Yield all families; those without a source are empty."""
        families = _families()
        pools = {library: self._pools(library, read) for library, read in POOLS.items()}
        for metric, labels, value in (*_allocators(pools), *self._library(pools)):
            families[metric].add_metric(labels, value)
        if self._broken:
            self._broken = False
            self._session.disconnect()
        return families.values()

    def close(self) -> None:
        """Close the connection to the driver; the next reading opens a new one."""
        self._session.disconnect()

    def _pools(self, library: str, read: Callable[[], dict[int, Pool]]) -> dict[int, Pool]:
        try:
            return read()
        except Exception as error:  # a library may raise any error for a lost device
            self._failures.record(self.name, f"pools of {library}", error)
            return {}

    def _library(self, pools: dict[str, dict[int, Pool]]) -> Iterator[Sample]:
        try:
            devices = self._session.in_cuda_order()
        except self._session.library.NVMLError as error:
            self._fail("driver", error)
            return
        for index, name in enumerate(devices):
            device_pools = {
                library: by_device[index] for library, by_device in pools.items() if index in by_device
            }
            try:
                yield from self._device(str(index), name, device_pools)
            except self._session.library.NVMLError as error:
                self._fail(f"device {index}", error)

    def _fail(self, source: str, error: Exception) -> None:
        self._failures.record(self.name, source, error)
        self._broken = True

    def _device(self, label: str, name: DeviceName, pools: dict[str, Pool]) -> Iterator[Sample]:
        nvml = self._session.library
        gpu = self._session.handle(name)
        uuid, model = nvml.nvmlDeviceGetUUID(gpu), nvml.nvmlDeviceGetName(gpu)
        yield "trainer_gpu_info", [label, uuid, model, nvml.nvmlSystemGetDriverVersion()], 1
        for metric, read in _FIELDS.items():
            if (value := self._field(label, metric, read, gpu)) is not None:
                yield metric, [label], value
        memory = self._field(label, "memory", lambda nvml, gpu: self._session.memory(gpu), gpu)
        processes = self._field(label, "processes", self._processes, gpu)
        if processes is not None and processes.own is not None:
            yield "trainer_gpu_process_memory_bytes", [label], processes.own + processes.workers
        if memory is not None:
            yield "trainer_gpu_memory_used_bytes", [label], memory.used
            yield "trainer_gpu_memory_total_bytes", [label], memory.total
            parts = self._parts[uuid].divide(memory, pools, processes)
            for part, value in parts.items():
                yield "trainer_gpu_memory_part_bytes", [label, part], value

    def _field(self, label: str, name: str, read: Callable[[Any, Any], Any], gpu: Any) -> Any:
        """Read one field; None if the device does not support it or this process may not read it."""
        nvml = self._session.library
        fatal = tuple(getattr(nvml, f"NVMLError_{kind}") for kind in _FATAL)
        try:
            return read(nvml, gpu)
        except fatal:
            raise
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
            return None
        except nvml.NVMLError as error:
            self._failures.record(self.name, f"{name} of device {label}", error)
            return None

    def _processes(self, nvml: Any, gpu: Any) -> Processes | None:
        """The device's processes that NVML lists, by owner; None if the list is incomplete.

        In a container NVML may list process numbers of another namespace: then this process is missing.
        """
        processes = [*nvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
        with contextlib.suppress(nvml.NVMLError_NotSupported):
            processes += nvml.nvmlDeviceGetGraphicsRunningProcesses(gpu)
        bytes_by_pid = {process.pid: process.usedGpuMemory for process in processes}
        trainer, workers = self._tree.trainer.pid, {process.pid for process in self._tree.workers()}
        known_bytes = {pid: number for pid, number in bytes_by_pid.items() if number is not None}
        worker_bytes = sum(known_bytes[pid] for pid in workers & known_bytes.keys())
        # If workers are listed and the trainer is not, the trainer holds nothing.
        trainer_bytes = known_bytes.get(
            trainer, 0 if trainer not in bytes_by_pid and workers & known_bytes.keys() else None
        )
        other_bytes = sum(
            number for pid, number in known_bytes.items() if pid != trainer and pid not in workers
        )
        return Processes(trainer_bytes, worker_bytes, other_bytes)


class CompiledCollector:
    """Counts JAX's compiled programs, one for each shape and each value of a static argument.

    Never imports JAX or initialises a backend.
    """

    name = "compiled"

    def collect(self) -> Iterable[Metric]:
        """Yield the count; a program without JAX has none."""
        yield GaugeMetricFamily(
            "trainer_jax_compiled_programs", "Compiled programs that JAX keeps.", jax_programs()
        )


def _allocators(pools: dict[str, dict[int, Pool]]) -> Iterator[Sample]:
    for index, pool in pools["torch"].items():
        device = [str(index)]
        yield "trainer_gpu_memory_allocated_bytes", device, pool.in_use
        yield "trainer_gpu_memory_reserved_bytes", device, pool.held
        if pool.unusable is not None:
            yield "trainer_gpu_memory_unusable_bytes", device, pool.unusable


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        metric: GaugeMetricFamily(metric, documentation, labels=["device", *labels])
        for metric, (documentation, *labels) in _DOCUMENTATION.items()
    }
