"""The names of a trainer and of its machine."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil
from prometheus_client import Metric

from heapwatch.collectors.families import gauge
from heapwatch.measure.process.ranks import Rank
from heapwatch.runtime.labels import machine


class InfoCollector:
    """Two constant series with value 1: the trainer's names as labels, and its machine's."""

    name = "info"

    def __init__(self, trainer: str, framework: str, run: str, rank: Rank | None = None) -> None:
        self._names = (trainer, framework, run, *(map(str, rank) if rank else ("", "")), _started())

    def collect(self) -> Iterable[Metric]:
        """Yield `trainer_info` and `trainer_machine_info`."""
        yield gauge(
            "trainer_info",
            "The names of this process, and when it started, in its own time zone; rank and world size "
            "are empty outside a distributed run.",
            ("trainer", "framework", "run", "rank", "world_size", "started"),
            {self._names: 1},
        )
        yield gauge(
            "trainer_machine_info",
            "The machine that this process runs on: the same label in each of its containers.",
            "machine",
            {machine(): 1},
        )


def _started() -> str:
    """Month, day, hour and minute; empty where the system does not tell."""
    try:
        return time.strftime("%m-%d %H:%M", time.localtime(psutil.Process().create_time()))
    except (psutil.Error, OSError):
        return ""
