"""A leak of each kind on a GPU, and the judge of what the collector says of it.

A reading of the collector stands for half a minute of training, so that hours are judged in a minute.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric

from heapwatch.collectors.readings import Readings
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.trainer import TrainerJudge

STEPS = 90  # 45 minutes
QUIET = 50  # steps before the leak begins
STEP_BYTES = 40_000_000

Collect = Callable[[], Iterable[Metric]]
Grow = Callable[[], None]
_WORKER = """
import sys, torch
held = []
for line in sys.stdin:
    held.append(torch.zeros(int(line), dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    print(len(held), flush=True)
"""


@dataclass(frozen=True)
class Leak:
    """What grows, and the component of `gpu_memory` in which that has to be seen; None: no leak."""

    name: str
    component: str | None
    begin: Callable[[ExitStack], Grow]


def leaks(torch: Any) -> list[Leak]:
    """One of each kind, on the first device."""

    def tensors(_: ExitStack) -> Grow:
        kept: list[Any] = []
        return lambda: kept.append(torch.zeros(STEP_BYTES, dtype=torch.uint8, device="cuda"))

    def pool(stack: ExitStack) -> Grow:
        driver = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")  # makes the context that the allocations below belong to

        def grow() -> None:
            address = ctypes.c_uint64()
            if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(STEP_BYTES)):
                raise MemoryError("cuMemAlloc failed")
            stack.callback(driver.cuMemFree_v2, address)

        return grow

    def worker(stack: ExitStack) -> Grow:
        child = subprocess.Popen(
            [sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(child.wait)
        stack.callback(child.kill)
        assert child.stdin is not None
        assert child.stdout is not None
        to_child, from_child = child.stdin, child.stdout

        def grow() -> None:
            to_child.write(f"{STEP_BYTES}\n")
            to_child.flush()
            if not from_child.readline():
                raise MemoryError("the child ended")

        return grow

    def nothing(_: ExitStack) -> Grow:
        kept = torch.zeros(10 * STEP_BYTES, dtype=torch.uint8, device="cuda")

        def grow() -> None:
            kept.add_(1)

        return grow

    return [
        Leak("nothing grows", None, nothing),
        Leak("tensors that a list keeps", "0", tensors),
        Leak("a pool beside torch's", "0 other_pools", pool),
        Leak("a child process", "0 workers", worker),
    ]


def components_that_leak(collect: Collect, grow: Grow, settle: Grow = lambda: None) -> set[str]:
    """Components of `gpu_memory` that leak at the end of all steps.

    Args:
        collect: the collector's series.
        grow: makes the leak larger.
        settle: waits until the driver's counters follow.

    """
    judge = TrainerJudge()
    for step in range(STEPS):
        if step >= QUIET:
            grow()
            settle()
        now = step * STEP_SECONDS
        judge.observe(now, Readings(collect()).sample(now))
    return {leak.component.name for leak in judge.leaks if leak.component.resource == "gpu_memory"}
