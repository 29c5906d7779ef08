"""What is known when growth is judged: the process's levels, and each growing container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heapwatch.analysis.leak import MATERIAL_BYTES, MATERIAL_SHARE
from heapwatch.explain.inventory import Known
from heapwatch.explain.memory import Memory
from heapwatch.explain.series import Growth
from heapwatch.explain.sites import Site
from heapwatch.explain.weigh import NOTHING_SEEN, Look

WARM_UP_SHARE = 0.25  # of the time watched, its first part is left out
WARM_UP_SECONDS = 60.0  # at most
_ENDS_MINUTES = 24 * 60.0  # what fills the memory within a day matters
_PAST_BOUND = 1.05


# Not at all; single items or everything, which says nothing of how many stay; or down to a length.
Emptying = Literal["never", "some", "trimmed"]


@dataclass(frozen=True)
class Candidate:
    """A growing container with everything known about it.

    Attributes:
        known: the container.
        growth: of its items, or of its bytes where these are read.
        look: what its items are.
        capacity: the bound found for it.
        site: where it grows.
        emptied: how the program also takes items out, see `Emptying`.
        holders: what holds it.
        remedy: what to do.

    """

    known: Known
    growth: Growth
    look: Look = NOTHING_SEEN
    capacity: int | None = None
    site: Site | None = None
    emptied: Emptying = "never"
    holders: tuple[str, ...] = ()
    remedy: str | None = None

    @property
    def bytes(self) -> float | None:
        """What all such containers hold; None while that is not measured."""
        known = self.known
        if known.in_bytes:
            return (known.items.last or 0.0) * known.multiplicity
        return known.held.last

    @property
    def bytes_per_minute(self) -> float:
        """Growth, from the items' pace and the bytes of one; 0 while that is not measured."""
        known, pace = self.known, 60 * self.growth.per_second
        if known.in_bytes:
            return pace * known.multiplicity
        counted = (known.items.last or 0.0) if known.kind == "ring" else known.weighed_items
        return pace * (known.held.last or 0.0) / counted if counted else 0.0

    @property
    def bounded(self) -> bool:
        """Whether it has a bound and keeps to it."""
        return self.capacity is not None and (self.known.items.last or 0.0) <= _PAST_BOUND * self.capacity


@dataclass(frozen=True)
class Levels:
    """The process's memory over time, and how long it is watched: seconds of one clock."""

    memory: Memory
    began: float
    now: float

    @property
    def start(self) -> float:
        """From when on a container's growth counts: until a while after the first step is warm-up."""
        began = max(self.began, self.memory.first_step_at)
        return began + min(WARM_UP_SECONDS, WARM_UP_SHARE * (self.now - began))

    @property
    def settled(self) -> float:
        """From when on the process's growth counts: loading modules is warm-up, too."""
        return max(self.start, self.memory.settled_at)

    @property
    def resident(self) -> float:
        """Resident bytes of now."""
        return self.memory.resident.last or 0.0

    @property
    def own(self) -> Growth:
        """Growth of what the process itself holds; pages of files the system takes back when in need."""
        return (self.memory.private if self.memory.private.last else self.memory.resident).growth(
            self.settled
        )

    @property
    def leaks(self) -> dict[str, float]:
        """Levels of the process that leak by the definition of the alerting rules, see `Looks`."""
        return self.memory.looks.leaks(self.settled)

    @property
    def per_minute(self) -> float:
        """Bytes a minute by which the process, its children and its GPU memory grow."""
        parts = (self.own, self.memory.workers.growth(self.settled), self.memory.gpu.growth(self.settled))
        return 60 * sum(part.per_second for part in parts)

    def matters(self, bytes_per_minute: float) -> bool:
        """Whether growth of this pace is material.

        It does where an hour of it is a material rise for the leak rules, or a day of it fills the memory.
        """
        left = max(0.0, self.memory.limit - self.resident)
        material = max(MATERIAL_BYTES, MATERIAL_SHARE * self.resident)
        return bytes_per_minute * 60 >= material or bytes_per_minute * _ENDS_MINUTES >= left > 0
