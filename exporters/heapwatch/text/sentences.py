"""Sentences about the memory of a process."""

from __future__ import annotations

from heapwatch.text.numbers import duration_range, size

_LEAST_RATE = 1000.0  # bytes a minute; growth below it is not mentioned
_ON_GPU, _ALSO_ON_GPU = 0.95, 0.05  # shares of the growth


def memory_grows(per_minute: float, on_gpu: float) -> str:
    """Such as "GPU memory grows by 2 GB/min."; empty if the growth is not worth mentioning.

    Args:
        per_minute: growth, in bytes a minute.
        on_gpu: the part of it that is memory of GPUs.

    """
    if per_minute < _LEAST_RATE:
        return ""
    if on_gpu < _ON_GPU * per_minute:
        part = f", {size(on_gpu)}/min of it on GPUs" if on_gpu > _ALSO_ON_GPU * per_minute else ""
        return f"Memory grows by {size(per_minute)}/min{part}."
    return f"GPU memory grows by {size(per_minute)}/min."


def memory_ends(least: float, most: float, *, on_gpu: bool = False) -> str:
    """Such as "Memory ends in 40 to 60 min at this rate.", from the least and most seconds."""
    return f"{'GPU memory' if on_gpu else 'Memory'} ends in {duration_range(least, most)} at this rate."
