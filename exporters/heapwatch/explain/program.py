"""What the explainer asks of the exporter about the program that both are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from heapwatch.collectors.progress import Progress
from heapwatch.collectors.readings import Readings
from heapwatch.explain.findings import Explanation
from heapwatch.explain.memory import NO_PROGRESS
from heapwatch.explain.worlds import Found
from heapwatch.judge.component import Component
from heapwatch.measure.introspection.roots import Root


class Visits(Protocol):
    """Visits of worker processes, in steps that do not wait."""

    def step(self, grows: bool) -> None:
        """Begin a visit if the workers grow, or take what it has found."""

    def with_names(self, explanation: Explanation) -> Explanation:
        """The explanation with what the last visit has found."""

    def abandon(self) -> None:
        """In a forked child: the visit belongs to the parent."""

    def stop(self) -> None:
        """End a visit."""


@dataclass
class Program:
    """A program without an exporter has declared nothing and has no workers.

    Attributes:
        extra_roots: returns further roots for the walk.
        progress: returns the progress that the program reported.
        readings: returns the levels that are not read here, such as what the trainer declared; None if a
            collector hangs.
        paths: returns where each declared buffer is, by name.
        bounded: returns items and bound of each container that has one, as they were read last.
        found_world: is called for each physics world, as by `Worlds`.
        other_machines: returns how many machines of the program's cluster are not looked at.
        workers: visits worker processes; None to name only what grows in this process.

    """

    extra_roots: Callable[[], list[Root]] = list
    progress: Callable[[], Progress] = lambda: NO_PROGRESS
    readings: Callable[[], Readings | None] = lambda: Readings(())
    paths: Callable[[], dict[str, str]] = dict
    bounded: Callable[[], Mapping[Component, tuple[float, float]]] = dict
    found_world: Found = lambda name, count: None
    other_machines: Callable[[], int] = int
    workers: Visits | None = None
