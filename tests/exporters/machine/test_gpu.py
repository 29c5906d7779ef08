from __future__ import annotations

from types import SimpleNamespace

import pytest

from heapwatch.machine.gpu import gpu_bytes
from heapwatch.measure.gpu import NvmlSession


class Lost(Exception):
    """What the driver raises."""


def library(fails: bool) -> SimpleNamespace:
    """A driver of two devices with a process on both, and one that hides its memory."""

    def processes(handle: int) -> list[SimpleNamespace]:
        if fails:
            raise Lost
        return [
            SimpleNamespace(pid=7, usedGpuMemory=100 + handle),
            SimpleNamespace(pid=8, usedGpuMemory=None),
        ]

    return SimpleNamespace(
        NVMLError=Lost,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeRunningProcesses=processes,
    )


@pytest.mark.parametrize(("fails", "held"), [(False, {7: 201, 8: 0}), (True, None)])
def test_the_memory_of_a_process_is_that_on_all_devices_and_none_of_a_lost_driver(
    fails: bool, held: dict[int, int] | None
) -> None:
    assert gpu_bytes(NvmlSession(library(fails), environment={})) == held
