"""Compare the GPU series with nvidia-smi while known amounts are allocated: `python -m benchmarks.gpu_check`.

Needs a GPU, torch with CUDA and nvidia-ml-py. Exits with 1 when a series is missing or differs.
"""

from __future__ import annotations

import subprocess
import sys
import time

import torch

from heapwatch.analysis.readings import Readings
from heapwatch.collectors.buffers import BufferCollector, BufferSources
from heapwatch.collectors.gpu import GpuCollector
from heapwatch.measure.deep_size import deep_size
from heapwatch.measure.process_tree import ProcessTree
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source

_SIZES = (100_000_000, 2_000_000_000)
_MEBI = 2**20
_FIELDS = {
    "trainer_gpu_memory_used_bytes": (
        "memory.used",
        _MEBI,
        600 * _MEBI,
    ),  # what the driver reserves may count
    "trainer_gpu_memory_total_bytes": ("memory.total", _MEBI, 2048 * _MEBI),
    "trainer_gpu_temperature_celsius": ("temperature.gpu", 1, 5),
    "trainer_gpu_power_watts": ("power.draw", 1, 100),
    "trainer_gpu_utilization_ratio": ("utilization.gpu", 0.01, 0.5),
}


class Check:
    """Rows of what was expected and what was found."""

    def __init__(self) -> None:
        self.failed = 0

    def row(self, what: str, found: float | None, expected: float, tolerance: float) -> None:
        """Print a comparison; absent is a failure."""
        good = found is not None and abs(found - expected) <= tolerance
        self.failed += not good
        print(
            f"{'ok  ' if good else 'FAIL'} {what:60} {found!s:>20} of {expected:>18,.1f} +- {tolerance:,.1f}"
        )


def main() -> int:
    failures, check = Failures(), Check()
    collector = GpuCollector(failures, ProcessTree())
    before = Readings(collector.collect())
    initialised: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    check.row("CUDA initialised by a scrape", float(initialised), 0, 0)
    early = before.by("trainer_gpu_memory_allocated_bytes", "device")
    check.row("allocator series before CUDA is used", len(early), 0, 0)
    held: list[torch.Tensor] = []
    for size in _SIZES:
        held.append(torch.zeros(size, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()
        time.sleep(1)  # the driver's own counters follow with a delay
        readings = Readings(collector.collect())
        total = sum(tensor.nbytes for tensor in held)
        check.row(
            "trainer_gpu_memory_allocated_bytes",
            readings.value("trainer_gpu_memory_allocated_bytes", device="0"),
            total,
            _MEBI,
        )
        reserved = readings.value("trainer_gpu_memory_reserved_bytes", device="0")
        check.row("trainer_gpu_memory_reserved_bytes", reserved, torch.cuda.memory_reserved(0), 0)
        own = readings.value("trainer_gpu_process_memory_bytes", device="0")
        if own is None:
            print("     the driver lists none of our processes (in a container): no series, as documented")
        else:
            check.row("trainer_gpu_process_memory_bytes (with CUDA's context)", own, total, 1024 * _MEBI)
        for metric, (field, unit, tolerance) in _FIELDS.items():
            check.row(metric, readings.value(metric, device="0"), nvidia_smi(field) * unit, tolerance)
    print("device:", Readings(collector.collect()).labels("trainer_gpu_info"))
    check.row("deep_size of the tensors, on the GPU", deep_size(held).gpu_bytes, sum(_SIZES), 0)
    check.row("deep_size of them, on the heap", deep_size(held).bytes, 500, 500)
    buffers = BufferCollector(failures, interval=1.0)
    buffers.measure("replay", BufferSources(Source.of(held)))
    buffers.sizes.sample()
    readings = Readings(buffers.sizes.collect())
    check.row(
        "trainer_buffer_offheap_bytes",
        readings.value("trainer_buffer_offheap_bytes", place="gpu"),
        sum(_SIZES),
        0,
    )
    check.row(
        "trainer_buffer_attached_tensors", readings.value("trainer_buffer_attached_tensors"), len(held), 0
    )
    held.clear()
    del buffers
    torch.cuda.empty_cache()
    after = Readings(collector.collect())
    left = after.value("trainer_gpu_memory_allocated_bytes", device="0")
    check.row("allocated after all is freed", left, 0, _MEBI)
    check.row("failures counted", sum(failures.counts.values()), 0, 0)
    began = time.perf_counter()
    for _ in range(20):
        list(collector.collect())
    print(f"a scrape takes {(time.perf_counter() - began) / 20 * 1e3:.2f} ms")
    return 1 if check.failed else 0


def nvidia_smi(field: str) -> float:
    """What nvidia-smi says of the first device, in its own unit."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "--id=0"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])


if __name__ == "__main__":
    sys.exit(main())
