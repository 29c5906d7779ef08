"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heapwatch.trackers import CycleLogger
from heapwatch.watch import Watch


def log_memory(watch: Watch, writer: Any) -> None:
    """Write memory as scalars at the end of each epoch or other cycle, whose number is their step.

    Args:
        watch: the trainer's watch.
        writer: a `SummaryWriter` of torch or tensorboardX.

    """

    def log(values: Mapping[str, float], cycle: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, cycle)

    watch.exporter.add_sink(CycleLogger("tensorboard", log))
