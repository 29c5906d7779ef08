"""Every GPU series, verdict and adapter on a real device: `make gpu-test`.

Needs a GPU, torch with CUDA, nvidia-ml-py and nvidia-smi. Writes docs/gpu-test.md; exits with 1 when a row
fails, with 2 where there is no GPU.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.gpu_leaks import components_that_leak, leaks
from benchmarks.measure import Table, interleaved
from benchmarks.running import ROOT
from heapwatch.analysis.readings import Readings
from heapwatch.collectors.buffers import BufferCollector, BufferSources
from heapwatch.collectors.gpu import GpuCollector
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source

DOCUMENT = ROOT / "docs" / "gpu-test.md"
_SIZES = (100_000_000, 2_000_000_000)
_MEBI = 2**20
_SETTLE_SECONDS = 0.2  # the driver's own counters follow with a delay
_OVERHEAD_PERCENT = 3.0
# What nvidia-smi calls it, its unit, and how far the two may differ: what the driver reserves may count.
_FIELDS = {
    "trainer_gpu_memory_used_bytes": ("memory.used", _MEBI, 600 * _MEBI),
    "trainer_gpu_memory_total_bytes": ("memory.total", _MEBI, 2048 * _MEBI),
    "trainer_gpu_temperature_celsius": ("temperature.gpu", 1, 5),
    "trainer_gpu_power_watts": ("power.draw", 1, 100),
    "trainer_gpu_utilization_ratio": ("utilization.gpu", 0.01, 0.5),
}


class Check:
    """Rows of what was expected and what was found."""

    def __init__(self) -> None:
        self.failed = 0
        self.table = Table("Rows", " | what | found | expected")

    def row(self, what: str, found: float | None, expected: float, tolerance: float = 0) -> None:
        """Compare numbers; absent is a failure."""
        good = found is not None and abs(found - expected) <= tolerance
        shown = "absent" if found is None else f"{found:,.6g}"
        self.says(what, good, shown, f"{expected:,.6g} ± {tolerance:,.6g}")

    def says(self, what: str, good: bool, found: str, expected: str) -> None:
        """Note a row, and print it."""
        self.failed += not good
        cells = ["ok" if good else "**FAIL**", what, found, expected]
        self.table.rows.append(cells)
        print(*cells, sep="  ", flush=True)

    def skipped(self, what: str, reason: str) -> None:
        """Note what could not be tried here."""
        self.table.rows.append(["not run", what, reason, ""])
        print("not run", what, reason, sep="  ", flush=True)


def refusal(torch: Any) -> str | None:
    """Why nothing can be tested here; None where there is a GPU."""
    if torch is None:
        return "gpu-test needs a GPU and torch with CUDA: torch is not installed"
    if not torch.cuda.is_available():
        return f"gpu-test needs a GPU: torch {torch.__version__} sees none on this machine"
    return None


def before_cuda(check: Check, torch: Any, collector: GpuCollector) -> None:
    """A scrape uses no CUDA that the program does not."""
    early = Readings(collector.collect()).by("trainer_gpu_memory_allocated_bytes", "device")
    check.row("CUDA initialised by a scrape", float(torch.cuda.is_initialized()), 0)
    check.row("allocator series before CUDA is used", len(early), 0)


def series(check: Check, torch: Any, collector: GpuCollector, smi: Callable[[str], float]) -> None:
    """Each series while known amounts are allocated."""
    held: list[Any] = []
    for size in _SIZES:
        held.append(torch.zeros(size, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()
        time.sleep(_SETTLE_SECONDS)
        readings = Readings(collector.collect())
        total = sum(tensor.nbytes for tensor in held)
        for name, expected in (("allocated", total), ("reserved", torch.cuda.memory_reserved(0))):
            metric = f"trainer_gpu_memory_{name}_bytes"
            check.row(metric, readings.value(metric, device="0"), expected, _MEBI)
        for metric, (field, unit, tolerance) in _FIELDS.items():
            check.row(metric, readings.value(metric, device="0"), smi(field) * unit, tolerance)
        parts(check, readings, total)
    check.row("deep_size of the tensors, on the GPU", deep_size(held).gpu_bytes, sum(_SIZES))
    check.row("deep_size of them, on the heap", deep_size(held).bytes, 500, 500)
    buffers = BufferCollector(Failures(), interval=1.0)
    buffers.measure("replay", BufferSources(Source.of(held)))
    buffers.sizes.sample()
    stored = Readings(buffers.sizes.collect())
    check.row(
        "trainer_buffer_offheap_bytes", stored.value("trainer_buffer_offheap_bytes", place="gpu"), sum(_SIZES)
    )
    check.row("trainer_buffer_attached_tensors", stored.value("trainer_buffer_attached_tensors"), len(held))
    held.clear()
    torch.cuda.empty_cache()
    left = Readings(collector.collect()).value("trainer_gpu_memory_allocated_bytes", device="0")
    check.row("allocated after all is freed", left, 0, _MEBI)


def parts(check: Check, readings: Readings, tensors: int) -> None:
    """The parts of the first device add up, and torch's is what was allocated."""
    total = readings.value("trainer_gpu_memory_total_bytes", device="0")
    found = {
        part: readings.value("trainer_gpu_memory_part_bytes", device="0", part=part) or 0.0
        for part in readings.by("trainer_gpu_memory_part_bytes", "part")
    }
    check.row("parts of the device, together", sum(found.values()), total or 0.0)
    check.row("part torch_in_use", found.get("torch_in_use"), tensors, _MEBI)
    if "context" in found:
        check.row("part context", found["context"], 800 * _MEBI, 700 * _MEBI)
    else:
        check.skipped("part context", "the driver lists none of our processes (in a container)")


def fragmentation(check: Check, torch: Any, collector: GpuCollector) -> None:
    """Small blocks between large ones: what is freed between them cannot be given back."""
    blocks = [torch.zeros(8 * _MEBI, dtype=torch.uint8, device="cuda") for _ in range(60)]
    for at in range(0, len(blocks), 2):
        blocks[at] = None
    torch.cuda.empty_cache()
    found = Readings(collector.collect())
    unusable = found.value("trainer_gpu_memory_unusable_bytes", device="0")
    expected = torch.cuda.memory_stats(0)["inactive_split_bytes.all.current"]
    check.row("trainer_gpu_memory_unusable_bytes", unusable, expected)
    check.says(
        "fragmentation is seen", bool(unusable), f"{unusable:,.0f}" if unusable else "none", "more than 0"
    )


def verdicts(check: Check, torch: Any, collector: GpuCollector) -> None:
    """A leak of each kind is reported under its own component, and nothing else is."""
    listed = Readings(collector.collect()).by("trainer_gpu_process_memory_bytes", "device")
    for leak in leaks(torch):
        if leak.component not in (None, "0") and not listed:
            check.skipped(f"leak: {leak.name}", "the driver lists none of our processes (in a container)")
            continue
        with ExitStack() as stack:
            grow = leak.begin(stack)
            found = components_that_leak(collector.collect, grow, lambda: time.sleep(_SETTLE_SECONDS))
        torch.cuda.empty_cache()
        wanted = {leak.component} - {None}
        check.says(f"leak: {leak.name}", found == wanted, str(sorted(found)), str(sorted(wanted, key=str)))


def waiting(check: Check, torch: Any, collector: GpuCollector) -> None:
    """Nothing that is read makes the CPU wait for the GPU."""
    held = [torch.zeros(1_000_000, device="cuda", requires_grad=True).exp() for _ in range(8)]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        list(collector.collect())
        deep_size(held)
        waited = "nothing"
    except RuntimeError as error:
        waited = str(error).splitlines()[0]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    check.says("what waits for the GPU", waited == "nothing", waited, "nothing")


def overhead(check: Check, torch: Any, collector: GpuCollector) -> None:
    """The cost of a scrape in every hundred training steps, where a scrape comes every 15 seconds."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(512, 2048, device="cuda")

    def steps() -> None:
        for _ in range(100):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()

    def watched() -> None:
        list(collector.collect())
        steps()

    steps()
    took = interleaved({"alone": steps, "watched": watched}, rounds=7)
    percent = 100 * (took["watched"] / took["alone"] - 1)
    check.row("overhead of a scrape in 100 steps, %", percent, 0, _OVERHEAD_PERCENT)


def jax_arrays(check: Check, collector: GpuCollector) -> None:
    """JAX's arrays and its pool, where it sees the GPU."""
    if importlib.util.find_spec("jax") is None:
        check.skipped("JAX", "not installed")
        return
    import jax

    if jax.default_backend() != "gpu":
        check.skipped("JAX", f"its backend is {jax.default_backend()}")
        return
    array = jax.numpy.zeros(100_000_000, dtype="uint8").block_until_ready()
    check.row("deep_size of a jax.Array, on the GPU", deep_size(array).gpu_bytes, array.nbytes)
    found = Readings(collector.collect())
    pool = jax.local_devices()[0].memory_stats()["bytes_in_use"]
    check.row(
        "part jax_in_use", found.value("trainer_gpu_memory_part_bytes", device="0", part="jax_in_use"), pool
    )


def cupy_arrays(check: Check, collector: GpuCollector) -> None:
    """CuPy's arrays and its default pool."""
    if importlib.util.find_spec("cupy") is None:
        check.skipped("CuPy", "not installed")
        return
    import cupy

    array = cupy.zeros(100_000_000, dtype="uint8")
    check.row("deep_size of a CuPy array, on the GPU", deep_size(array).gpu_bytes, array.data.mem.size)
    pool = cupy.get_default_memory_pool()
    found = Readings(collector.collect())
    for part, size in (
        ("cupy_in_use", pool.used_bytes()),
        ("cupy_cached", pool.total_bytes() - pool.used_bytes()),
    ):
        read = found.value("trainer_gpu_memory_part_bytes", device="0", part=part)
        check.row(f"part {part}", read, size)


def adapters(check: Check) -> None:
    """The tests of the adapters, whose frameworks take the GPU where there is one."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:warnings", "tests/exporters/integrations"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no output"
    check.says("adapters", done.returncode == 0, last, "all pass")


def nvidia_smi(field: str) -> float:
    """What nvidia-smi says of the first device, in its own unit."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "--id=0"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])


def document(check: Check, device: str, day: str) -> str:
    """The page of docs/."""
    return (
        f"# On a real GPU\n\nWritten by `make gpu-test` on {day}, on {device}.\n\n{check.table.markdown()}\n"
    )


def main() -> int:
    """Run all; 1 when a row fails, 2 without a GPU."""
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if (reason := refusal(torch)) is not None:
        print(reason, file=sys.stderr)
        return 2
    assert torch is not None
    failures, check = Failures(), Check()
    collector = GpuCollector(failures, ProcessTree())
    before_cuda(check, torch, collector)
    series(check, torch, collector, nvidia_smi)
    fragmentation(check, torch, collector)
    verdicts(check, torch, collector)
    waiting(check, torch, collector)
    overhead(check, torch, collector)
    jax_arrays(check, collector)
    cupy_arrays(check, collector)
    adapters(check)
    check.row("failures counted", sum(failures.counts.values()), 0)
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    DOCUMENT.write_text(document(check, torch.cuda.get_device_name(0), day))
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
