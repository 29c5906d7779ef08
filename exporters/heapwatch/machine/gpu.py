"""GPU memory by process, as the driver lists it."""

from __future__ import annotations

from collections import Counter

from heapwatch.measure.gpu import NvmlSession


def gpu_bytes(session: NvmlSession) -> Counter[int]:
    """Bytes on all GPUs by process id; empty without a driver, or if that is lost.

    In a container the driver may list the ids that processes have outside: these are then no known processes.
    """
    held: Counter[int] = Counter()
    lost: type[Exception] = getattr(session.library, "NVMLError", OSError)
    try:
        for name in session.devices():
            for process in session.library.nvmlDeviceGetComputeRunningProcesses(session.handle(name)):
                held[process.pid] += process.usedGpuMemory or 0
    except lost:
        session.disconnect()
    return held
