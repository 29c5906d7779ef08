"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heapwatch.trackers import CycleLogger
from heapwatch.watch import Watch


def log_memory(watch: Watch, run: Any) -> None:
    """Log memory to a run at the end of each epoch or other cycle.

    The values are sent with the next `log` of the run, so its steps do not change. Plots of them have the
    cycle as their x axis, `memory/cycle`.

    Args:
        watch: the trainer's watch.
        run: what `wandb.init()` returned.

    """
    run.define_metric("memory/cycle", hidden=True)
    run.define_metric("memory/*", step_metric="memory/cycle")

    def log(values: Mapping[str, float], cycle: int) -> None:
        run.log({**values, "memory/cycle": cycle}, commit=False)

    watch.exporter.add_sink(CycleLogger("wandb", log))
