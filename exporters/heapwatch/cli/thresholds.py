"""The limits that the monitor applies to a trainer: the command line's, the trainer's, or the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heapwatch.analysis.limits import growth_limits_of, limits_of
from heapwatch.analysis.readings import Component, Readings


@dataclass(frozen=True)
class Thresholds:
    """Limits as given on the command line, by severity; the rest comes from each trainer.

    A `profile` overrides what trainers choose and declare.
    """

    profile: str | None = None
    given: Mapping[Component, Mapping[str, float]] = field(default_factory=dict)

    def limits(self, readings: Readings) -> dict[Component, dict[str, float]]:
        """Return the limits of levels for a trainer."""
        merged = limits_of(readings, self.profile)
        for component, limits in self.given.items():
            merged[component] = merged.get(component, {}) | dict(limits)
        return merged

    def growth_limits(self, readings: Readings) -> dict[Component, float]:
        """Return the limits of growth per minute for a trainer."""
        return growth_limits_of(readings, self.profile)
