"""A growing container, with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heapwatch.explain.places import KnownContainer
from heapwatch.explain.sites import Site
from heapwatch.explain.thresholds import (
    CAREFUL_SPAN,
    LITTLE_BYTES,
    LITTLE_SHARE,
    OF_SWING,
    PAST_BOUND,
    PATIENCE_SPAN,
    REMOVED_SPAN,
    SAME_RATE,
    SHORTEST_SPAN,
    STOPPED,
    STOPPED_SECONDS,
)
from heapwatch.explain.weigh import NO_TRAITS, ItemTraits
from heapwatch.judge.component import ENTITIES
from heapwatch.judge.level import FloorGrowth, LevelSeries, rises
from heapwatch.judge.memory import MemoryGrowth

# `some`: single items, which does not limit the length. `whole`: all of them. `trimmed`: down to a length.
Emptying = Literal["never", "some", "whole", "trimmed"]


@dataclass(frozen=True)
class Candidate:
    """A growing container with everything known about it.

    Attributes:
        known: the container.
        growth: growth of its items, or of its bytes for an array, a tensor or a text.
        traits: properties of its newest items.
        capacity: its bound; None where none was found.
        site: the line that fills it.
        emptied: how the program removes items, see `Emptying`.
        holders: what refers to it, the nearest first.
        remedy: suggested change.

    """

    known: KnownContainer
    growth: FloorGrowth
    traits: ItemTraits = NO_TRAITS
    capacity: int | None = None
    site: Site | None = None
    emptied: Emptying = "never"
    holders: tuple[str, ...] = ()
    remedy: str | None = None

    @property
    def bytes(self) -> float | None:
        """Bytes that all containers of this path hold; None while they are not measured.

        They were measured when there were fewer items: each counts as one of those.
        """
        container, items = self.known, self.known.items.last or 0.0
        if container.in_bytes:
            return items * container.multiplicity
        return container.held.last if container.bytes_each is None else items * container.bytes_each

    @property
    def bytes_per_minute(self) -> float:
        """Growth of the items times the bytes of a new one; 0 while these are not measured."""
        container, rate = self.known, 60 * self.growth.per_second
        if container.in_bytes:
            return rate * container.multiplicity
        return rate * (container.bytes_of_new or 0.0)

    @property
    def rising(self) -> bool:
        """Whether it goes on rising.

        A container that is emptied again and again may seem to rise in a few readings, by chance. Its floor
        has to rise by half of its largest swing. One that stands still for twice as long as ever between two
        changes has stopped.
        """
        growth, items = self.growth, self.known.items
        if items.read_at - items.changed_at > self._longest_pause:
            return False
        return growth.rising and (self.emptied == "never" or growth.total >= OF_SWING * growth.swing)

    @property
    def leaks_on(self) -> bool:
        """Whether it was found to leak, and has more items now than ever before."""
        items = self.known.items
        return (
            self.known.leaking_since is not None and items.new_high(items.read_at - self._longest_pause) > 0
        )

    @property
    def _longest_pause(self) -> float:
        """Seconds without a change after which it has stopped."""
        return max(STOPPED_SECONDS, STOPPED * self.known.items.longest_pause)

    @property
    def bounded(self) -> bool:
        """Whether it has a bound and keeps to it, or comes back to it each time it is cut."""
        items = self.growth.floor or self.known.items.last or 0.0
        return self.capacity is not None and items <= PAST_BOUND * self.capacity


def span_wanted(candidate: Candidate, levels: MemoryGrowth) -> float:
    """Seconds for which a container has to grow to be a leak."""
    # The first round of what is emptied may last as long; after it the floor tells.
    is_first = candidate.emptied == "whole" and not levels.faster_leaks
    if is_first or candidate.emptied == "trimmed" or _is_per_entity(candidate.known.items, levels):
        return PATIENCE_SPAN
    if candidate.emptied != "never":
        return REMOVED_SPAN
    grown = candidate.bytes_per_minute / 60 * candidate.growth.span
    little = max(LITTLE_BYTES, LITTLE_SHARE * levels.resident)
    return CAREFUL_SPAN if grown < little else SHORTEST_SPAN


def _is_per_entity(items: LevelSeries, levels: MemoryGrowth) -> bool:
    """Whether items have come with new entities, whose number does not leak by itself."""
    counts = () if any(map(levels.leaks_in, ENTITIES)) else levels.memory.entities.values()
    spans = ((count, (levels.start, min(items.read_at, count.read_at))) for count in counts)
    return any(sum(rises(count, *span)) >= SAME_RATE * sum(rises(items, *span)) > 0 for count, span in spans)
