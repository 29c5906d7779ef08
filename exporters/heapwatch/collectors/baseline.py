"""The memory at the start of training: the baseline for growth over a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily


class BaselineCollector:
    """Reads the resident memory once, at the first safe point, when the trainer is set up.

    Args:
        resident: reads the resident memory, in bytes.

    """

    name = "baseline"

    def __init__(self, resident: Callable[[], int]) -> None:
        self._resident = resident
        self._began: int | None = None

    def note(self) -> None:
        """Store the present memory as the baseline, unless there is one."""
        if self._began is None:
            self._began = self._resident()

    def collect(self) -> Iterable[Metric]:
        """Yield the baseline, once there is one."""
        baseline = GaugeMetricFamily(
            "trainer_memory_baseline_bytes", "Resident memory of the trainer when training began."
        )
        if self._began is not None:
            baseline.add_metric([], self._began)
        yield baseline
