"""The memory of one GPU, divided into parts that add up to all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heapwatch.measure.gpu.device_pools import Pool


@dataclass(frozen=True, slots=True)
class Processes:
    """What the driver lists on a device, in bytes.

    Attributes:
        own: of this process; None where it is not listed.
        workers: of its children.
        others: of all other processes.

    """

    own: int | None
    workers: int = 0
    others: int = 0


class GpuParts:
    """Divides the memory of one device; keeps the least that this process was seen to hold beside its pools.

    That least is what the CUDA context costs, with kernels that are loaded and pools that were there from
    the start.
    """

    def __init__(self) -> None:
        self._context: int | None = None

    def divide(
        self, total: int, used: int, pools: Mapping[str, Pool], processes: Processes | None
    ) -> dict[str, int]:
        """Bytes by part, from those of the device and of each library's pool on it.

        Empty where the readings contradict each other, which are not taken at one moment.

        `unattributed` is in use, and no pool and no listed process accounts for it: what the driver keeps,
        and processes that are hidden, as in a container.
        """
        parts = {"free": total - used}
        for library, pool in pools.items():
            parts[f"{library}_in_use"] = pool.in_use
            parts[f"{library}_cached"] = pool.held - pool.in_use
        pooled = sum(pool.held for pool in pools.values())
        if processes is not None and processes.own is not None and processes.own >= pooled:
            beside = processes.own - pooled
            rest = used - processes.own - processes.workers - processes.others
            if rest >= 0:
                if processes.own:
                    self._context = beside if self._context is None else min(self._context, beside)
                    parts["context"] = self._context
                    parts["other_pools"] = beside - self._context
                parts["workers"] = processes.workers
                parts["other_processes"] = processes.others
                parts["unattributed"] = rest
                return parts
        parts["unattributed"] = used - pooled
        return parts if parts["unattributed"] >= 0 else {}
