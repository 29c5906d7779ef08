"""GPU memory and load: this process by torch's allocator, whole devices and the process tree by NVML."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.nvml import DeviceName, Session, as_text
from heapwatch.measure.process_tree import ProcessTree
from heapwatch.runtime.failures import Failures

_FIELDS: dict[str, Callable[[Any, Any], float]] = {
    "trainer_gpu_memory_used_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    "trainer_gpu_memory_total_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
    "trainer_gpu_utilization_ratio": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "trainer_gpu_temperature_celsius": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
        gpu, nvml.NVML_TEMPERATURE_GPU
    ),
    "trainer_gpu_power_watts": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
}

# After one of these the whole device is gone, or the whole driver, and not a single field.
_FATAL = ("GpuIsLost", "Uninitialized", "DriverNotLoaded", "ResetRequired")


class GpuCollector:
    """Reads GPUs on the scrape thread. It never initialises CUDA and never imports torch.

    A field that a device does not offer has no series; a device that is lost loses its own; a driver that is
    gone is tried again at the next scrape. Each loss counts as a failure, unless the field never existed.
    The label `device` is the number by which CUDA knows the device in this process.
    """

    name = "gpu"

    def __init__(self, failures: Failures, tree: ProcessTree, session: Session | None = None) -> None:
        self._failures = failures
        self._tree = tree
        self._session = session or Session()
        self._broken = False

    def collect(self) -> Iterable[Metric]:
        """Yield all families; those of what is not there are empty."""
        families = _families()
        for metric, labels, value in (*self._allocator(), *self._library()):
            families[metric].add_metric(labels, value)
        if self._broken:
            self._broken = False
            self._session.disconnect()
        return families.values()

    def _allocator(self) -> Iterator[tuple[str, list[str], float]]:
        cuda = _initialised_cuda()
        for index in range(cuda.device_count() if cuda else 0):
            yield "trainer_gpu_memory_allocated_bytes", [str(index)], cuda.memory_allocated(index)
            yield "trainer_gpu_memory_reserved_bytes", [str(index)], cuda.memory_reserved(index)

    def _library(self) -> Iterator[tuple[str, list[str], float]]:
        try:
            devices = self._session.devices()
        except self._session.library.NVMLError as error:
            self._fail("driver", error)
            return
        for index, name in enumerate(_as_torch_orders(devices)):
            try:
                yield from self._device(str(index), name)
            except self._session.library.NVMLError as error:
                self._fail(f"device {index}", error)

    def _fail(self, what: str, error: Exception) -> None:
        self._failures.record(self.name, what, error)
        self._broken = True

    def _device(self, label: str, name: DeviceName) -> Iterator[tuple[str, list[str], float]]:
        nvml = self._session.library
        gpu = self._session.handle(name)
        yield "trainer_gpu_info", [label, *_identity(nvml, gpu)], 1
        fatal = tuple(getattr(nvml, f"NVMLError_{kind}") for kind in _FATAL)
        for metric, read in (*_FIELDS.items(), ("trainer_gpu_process_memory_bytes", self._tree_bytes)):
            try:
                value = read(nvml, gpu)
            except fatal:
                raise
            except nvml.NVMLError_NotSupported:
                continue
            except nvml.NVMLError as error:
                self._failures.record(self.name, f"{metric} of device {label}", error)
                continue
            if value is not None:
                yield metric, [label], value

    def _tree_bytes(self, nvml: Any, gpu: Any) -> float | None:
        """Bytes that NVML lists for the process and its children; None if it lists none of them.

        Inside a container it may list other process ids than ours: no series is better than a zero.
        """
        processes = [*nvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
        with contextlib.suppress(nvml.NVMLError_NotSupported):
            processes += nvml.nvmlDeviceGetGraphicsRunningProcesses(gpu)
        used = {
            process.pid: process.usedGpuMemory for process in processes if process.usedGpuMemory is not None
        }
        tree = {process.pid for process in (self._tree.trainer, *self._tree.workers())}
        ours = [used[pid] for pid in tree & used.keys()]
        return sum(ours) if ours else None


def _identity(nvml: Any, gpu: Any) -> list[str]:
    asked = nvml.nvmlDeviceGetUUID(gpu), nvml.nvmlDeviceGetName(gpu), nvml.nvmlSystemGetDriverVersion()
    return [as_text(answer) for answer in asked]


def _initialised_cuda() -> Any:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _as_torch_orders(devices: list[DeviceName]) -> list[DeviceName]:
    """Devices by UUID where torch reports it: CUDA numbers the fastest first, NVML by bus."""
    cuda = _initialised_cuda()
    if cuda is None or not devices or any(isinstance(name, str) for name in devices):
        return devices
    found = [getattr(cuda.get_device_properties(index), "uuid", None) for index in range(cuda.device_count())]
    return [f"GPU-{uuid}" for uuid in found] if all(found) else devices


def _families() -> dict[str, GaugeMetricFamily]:
    described = {
        "trainer_gpu_memory_allocated_bytes": "Memory of live tensors of this process, by torch's allocator.",
        "trainer_gpu_memory_reserved_bytes": "Memory that torch's allocator holds, in use or cached.",
        "trainer_gpu_memory_used_bytes": "Memory in use on the whole device, by all processes (NVML).",
        "trainer_gpu_memory_total_bytes": "Memory of the device (NVML).",
        "trainer_gpu_utilization_ratio": "Share of recent time in which a kernel ran on the device (NVML).",
        "trainer_gpu_temperature_celsius": "Temperature of the device (NVML).",
        "trainer_gpu_power_watts": "Power draw of the device (NVML).",
        "trainer_gpu_process_memory_bytes": "Memory of this process and its children on the device (NVML).",
    }
    families = {
        metric: GaugeMetricFamily(metric, documentation, labels=["device"])
        for metric, documentation in described.items()
    }
    families["trainer_gpu_info"] = GaugeMetricFamily(
        "trainer_gpu_info", "A device that this process may use.", labels=["device", "uuid", "name", "driver"]
    )
    return families
