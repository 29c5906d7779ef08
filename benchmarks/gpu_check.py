"""Every GPU series, verdict and adapter on a real device: `make gpu-test`.

Needs a GPU, torch with CUDA, nvidia-ml-py and nvidia-smi. Writes benchmarks/gpu-test.md; exits with 1 when a
row fails, with 2 where there is no GPU.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import os
import platform
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from benchmarks import gpu_trainers
from benchmarks.gpu_leaks import components_that_leak, leaks
from benchmarks.measure import Table
from benchmarks.running import ROOT
from heapwatch.collectors.buffers import BufferCollector, BufferSources
from heapwatch.collectors.gpu import GpuCollector
from heapwatch.collectors.readings import Readings
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source

ADAPTERS = ("jax", "lightning", "ray", "stable_baselines3", "torchrl", "transformers")
# Runs a file of tests; the last line says the bytes that they held on the GPU at most.
_TESTS = """
import sys, pytest
status = pytest.main(["-q", "-p", "no:warnings", "-p", "no:cacheprovider", sys.argv[1]])
torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
used = torch.cuda.max_memory_allocated() if torch else 0
if jax and jax.default_backend() == "gpu":
    used += jax.local_devices()[0].memory_stats()["peak_bytes_in_use"]
print(used)
sys.exit(status)
"""
DOCUMENT = ROOT / "benchmarks" / "gpu-test.md"
_SIZES = (100_000_000, 2_000_000_000)
_MEBI = 2**20
_SETTLE_SECONDS = 0.2  # the driver's own counters follow with a delay
_CAPTURES = 100
_PAIRS = 800
# What nvidia-smi calls it, its unit, and how far the two may differ.
_FIELDS = {
    "trainer_gpu_memory_used_bytes": ("memory.used", _MEBI, _MEBI),
    "trainer_gpu_memory_total_bytes": ("memory.total", _MEBI, _MEBI),
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

    def lacks(self, what: str, module: str) -> bool:
        """Whether a module is not installed, which is noted."""
        if importlib.util.find_spec(module) is not None:
            return False
        self.skipped(what, f"{module} is not installed")
        return True


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


def series(check: Check, torch: Any, collector: GpuCollector) -> None:
    held: list[Any] = []  # torch rounds a large tensor up, by a mebibyte at most
    for size in _SIZES:
        held.append(torch.zeros(size, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()
        time.sleep(_SETTLE_SECONDS)
        readings = Readings(collector.collect())
        total = sum(tensor.nbytes for tensor in held)
        for name, expected in (("allocated", total), ("reserved", torch.cuda.memory_reserved(0))):
            metric = f"trainer_gpu_memory_{name}_bytes"
            check.row(metric, readings.value(metric, device="0"), expected, len(held) * _MEBI)
        for metric, (field, unit, tolerance) in _FIELDS.items():
            check.row(metric, readings.value(metric, device="0"), float(nvidia_smi(field)) * unit, tolerance)
        parts(check, readings, total, len(held) * _MEBI)
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


def parts(check: Check, readings: Readings, tensors: int, tolerance: int) -> None:
    """The parts of the first device add up, and torch's is what was allocated."""
    total = readings.value("trainer_gpu_memory_total_bytes", device="0")
    found = {
        part: readings.value("trainer_gpu_memory_part_bytes", device="0", part=part) or 0.0
        for part in readings.by("trainer_gpu_memory_part_bytes", "part")
    }
    check.row("parts of the device, together", sum(found.values()), total or 0.0)
    check.row("part torch_in_use", found.get("torch_in_use"), tensors, tolerance)
    if "context" in found:
        check.row("part context", found["context"], 800 * _MEBI, 700 * _MEBI)
    else:
        check.skipped("part context", "the driver lists none of our processes (in a container)")


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


def training(check: Check) -> None:
    """The slowdown of Stable-Baselines3's DQN on the GPU with everything on, in CPU time."""
    if check.lacks("training on the GPU", "stable_baselines3"):
        return
    from benchmarks.cost.training import confidence, watched_blocks

    blocks = watched_blocks(_PAIRS, "cuda")
    own = blocks.samples + blocks.threads
    slowdown, low, high = (share + own for share in confidence(blocks.pairs))
    found = f"{slowdown:+.2%} (95 % interval {low:+.2%} to {high:+.2%}, {len(blocks.pairs)} pairs)"
    found += f", of which samples {blocks.samples:+.2%}, threads {blocks.threads:+.2%}"
    check.says("SB3's DQN on the GPU with everything on, slowdown", slowdown < 0.01, found, "below 1 %")


def captures(check: Check, torch: Any) -> None:
    """A graph that a thread of ours is the last to refer to, while the program captures another one."""
    values = torch.zeros(1000, device="cuda")

    def capture(dropped: list[Any] | None = None) -> Any:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            values.add_(1)
            if dropped is not None:
                thread = threading.Thread(target=_drop, args=[dropped])
                thread.start()
                thread.join()
            values.mul_(1)
        graph.replay()
        return graph

    capture()
    values.zero_()
    for _ in range(_CAPTURES):
        capture([capture()])
    check.row("captures while an older graph is freed", values[0].item(), 2 * _CAPTURES)


def _drop(dropped: list[Any]) -> None:
    allow_capture()
    dropped.clear()


def trainers(check: Check) -> None:
    """Trainers that are watched from their start, or entered; beside them the tests of the adapters."""
    with ThreadPoolExecutor() as pool:
        found = [pool.submit(rows) for rows in (gpu_trainers.watched, gpu_trainers.entered)]
        adapters(check)
        for rows in found:
            for row in rows.result():
                check.says(*row)


def jax_arrays(check: Check, collector: GpuCollector) -> None:
    """JAX's arrays and its pool, where it sees the GPU."""
    if check.lacks("JAX", "jax"):
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


def adapters(check: Check) -> None:
    """The tests of the adapters, whose frameworks take the GPU where there is one."""
    for framework in ADAPTERS:
        what = f"adapter for {framework}"
        if check.lacks(what, framework):
            continue
        file = ROOT / "tests" / "exporters" / "integrations" / f"test_{framework}.py"
        done = subprocess.run(
            [sys.executable, "-c", _TESTS, str(file)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        )  # fmt: skip
        print(done.stdout if done.returncode else "", end="")
        passed, used = ["no output", "0", *done.stdout.splitlines()][-2:]
        held = int(used) if used.isdecimal() else 0
        good = done.returncode == 0 and held > 0
        check.says(what, good, f"{passed}, {held:,} bytes on the GPU", "all pass, more than 0")


def nvidia_smi(field: str) -> str:
    """What nvidia-smi says of the first device, in its own unit."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "--id=0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


def document(check: Check, device: str, day: str) -> str:
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
    series(check, torch, collector)
    verdicts(check, torch, collector)
    waiting(check, torch, collector)
    captures(check, torch)
    trainers(check)
    training(check)
    jax_arrays(check, collector)
    check.row("failures counted", sum(failures.counts.values()), 0)
    device = (
        f"{torch.cuda.get_device_name(0)}, driver {nvidia_smi('driver_version')}, torch {torch.__version__}, "
        f"Python {platform.python_version()}"
    )
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    DOCUMENT.write_text(document(check, device, day))
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
