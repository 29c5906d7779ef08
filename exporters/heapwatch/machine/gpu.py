"""GPU memory by process, as the driver lists it."""

from __future__ import annotations

from collections import Counter

from heapwatch.measure.gpu import NvmlSession


def gpu_bytes(session: NvmlSession) -> Counter[int] | None:
    """Bytes on all GPUs by process id; None without a driver, or if that is lost.

    In a container the driver may list the ids that processes have outside: these are then no known processes.
    """
    sizes: Counter[int] = Counter()
    try:
        devices = session.devices()
        for name in devices:
            for process in session.library.nvmlDeviceGetComputeRunningProcesses(session.handle(name)):
                sizes[process.pid] += process.usedGpuMemory or 0
    except Exception as error:
        if not isinstance(error, getattr(session.library, "NVMLError", ())):
            raise
        session.disconnect()
        return None
    return sizes if devices else None
