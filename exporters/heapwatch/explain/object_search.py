"""The search among all objects, for growth that no container explains."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace

from heapwatch.explain.attribution import plausible
from heapwatch.explain.census import Census, GrowingType
from heapwatch.explain.describe import Describer
from heapwatch.explain.findings import Finding
from heapwatch.explain.garbage import Uncollected
from heapwatch.explain.inventory import Inventory
from heapwatch.judge.level import FloorGrowth, is_steady
from heapwatch.judge.memory import MemoryGrowth

TYPES_REPORTED = 3


class ObjectSearch:
    """Counts objects by type, inspects the types that grow, and finds long containers without a path.

    While the garbage collector is off, a census would add to the objects that it never frees. Then those
    objects are counted instead.

    Args:
        inventory: the containers that have a path.
        describer: turns what was seen into findings.
        clock: monotonic seconds.

    """

    def __init__(
        self, inventory: Inventory, describer: Describer, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.census = Census(clock)
        self.uncollected = Uncollected(self.census, clock)
        self._inventory = inventory
        self._describer = describer
        self._growing: list[tuple[GrowingType, FloorGrowth]] = []
        self._long: list[Finding] = []

    def find_long_containers(self) -> None:
        """Find long containers that the walk has not reached."""
        self._long = self.census.search(self._inventory.ids())

    def has_types_to_inspect(self) -> bool:
        """Whether it is not known yet what refers to the types that grow."""
        return not self.census.is_inspected(self._growing, TYPES_REPORTED)

    def inspect(self) -> None:
        """Measure instances of the types that grow, and find what refers to them."""
        self.census.inspect(self._growing, self._inventory.anchors, TYPES_REPORTED)

    def findings(self, levels: MemoryGrowth) -> list[Finding]:
        """What was found, the fastest growth first."""
        if not gc.isenabled():
            return [*self._long, *self._describer.describe_garbage(self.uncollected, levels)]
        self._growing = self.census.growing(levels.start)[: 4 * TYPES_REPORTED]
        types = [
            replace(
                plausible(self._describer.describe_type(growing_type, growth), levels),
                steady=is_steady(growing_type.counts, levels.memory.progress, levels.start),
            )
            for growing_type, growth in self._growing
        ]
        types.sort(key=lambda finding: (finding.bytes is None, -finding.bytes_per_minute))
        return [*self._long, *types[:TYPES_REPORTED]]
