"""Logs memory to experiment trackers; each tracker has a module that is imported on use."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping

from heapwatch.judge.rates import median_slope
from heapwatch.recording.points import CYCLES, Point

_WINDOW = 30  # cycles that a growth rate looks back


class CycleLogger:
    """Passes the values and the number of each cycle to `log`, in the exporter's thread.

    Logged are `memory/rss_mb` and the like, `memory/{object}/size_mb` of named objects and buffers,
    `memory/{object}/count` of watched classes, and the growth of each over the last 30 cycles, such as
    `memory/{object}/growth_mb_per_epoch`. Unknown values are omitted. 1 MB is 1e6 bytes.

    Args:
        name: the name of the tracker.
        log: takes the values and the number of the cycle.

    """

    def __init__(self, name: str, log: Callable[[Mapping[str, float], int], object]) -> None:
        self.name = name
        self._log = log
        self._recent: dict[str, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=_WINDOW))

    def take(self, point: Point) -> None:
        """Log the point if it is the end of a cycle."""
        if point.event == "cycle":
            unit = next(unit for unit in CYCLES if unit in point.progress)
            cycle = point.cycle(unit)
            self._log(self._values(point, unit, cycle), cycle)

    def close(self) -> None:
        """Discard the recent cycles; the tracker's run stays open."""
        self._recent.clear()

    def _values(self, point: Point, unit: str, cycle: int) -> dict[str, float]:
        values = {}
        for name, level, suffix in _levels(point):
            values[f"memory/{name}{suffix}"] = level
            recent = self._recent[name + suffix]
            recent.append((cycle, level))
            if len(recent) > 1:
                growth = f"growth_per_{unit}" if suffix == "/count" else f"growth_mb_per_{unit}"
                values[f"memory/{name}/{growth}"] = median_slope(tuple(recent))
        return values


def _levels(point: Point) -> list[tuple[str, float, str]]:
    """Name, level in MB or objects, and what the level's own key ends in."""
    sizes = {
        "rss": point.resident_bytes,
        "workers": point.worker_bytes,
        "gpu_allocated": point.gpu_allocated_bytes,
    }
    levels = [(name, nbytes / 1e6, "_mb") for name, nbytes in sizes.items() if nbytes is not None]
    levels += [(name, nbytes / 1e6, "/size_mb") for name, nbytes in point.sizes.items()]
    levels += [(f"buffer.{name}", buffer.nbytes / 1e6, "/size_mb") for name, buffer in point.buffers.items()]
    return levels + [(name, count, "/count") for name, count in {**point.items, **point.objects}.items()]
