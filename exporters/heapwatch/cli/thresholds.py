"""The limits that the monitor holds a trainer to: the command line's, else its own, else the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heapwatch.analysis.readings import Component, Readings

Limits = dict[Component, dict[str, float]]

MEMORY = Component("memory", "")
BODIES = Component("bodies", "all")

# The defaults of prometheus/rules/limits.yml, for a terminal without Prometheus.
DEFAULTS: Limits = {
    MEMORY: {"warning": 1e9, "critical": 1.5e9, "emergency": 2e9},
    BODIES: {"warning": 500, "critical": 1000, "emergency": 1500},
    Component("bodies", "static"): {"critical": 300},
    Component("entities", "food_sources"): {"warning": 50},
}
AGGRESSIVE: Limits = DEFAULTS | {
    MEMORY: {"warning": 600e6, "critical": 900e6},
    BODIES: {"warning": 300, "critical": 500},
}
GROWTH_DEFAULTS: dict[Component, float] = {
    MEMORY: 20e6,
    BODIES: 10,
    Component("bodies", "static"): 10,
    Component("bodies", "dynamic"): 10,
    Component("bodies", "unknown"): 10,
    Component("entities", "food_sources"): 5,
}


@dataclass(frozen=True)
class Thresholds:
    """Limits as given on the command line, by severity; the rest comes from each trainer."""

    aggressive: bool = False
    given: Mapping[Component, Mapping[str, float]] = field(default_factory=dict)

    def limits(self, readings: Readings) -> Limits:
        """Return the limits of levels for a trainer."""
        profile = readings.value("trainer_limit_profile", profile="aggressive")
        merged = {
            key: dict(value)
            for key, value in (AGGRESSIVE if self.aggressive or profile else DEFAULTS).items()
        }
        for source in ({} if self.aggressive else readings.limits(), self.given):
            for component, limits in source.items():
                merged[component] = merged.get(component, {}) | dict(limits)
        return merged

    def growth_limits(self, readings: Readings) -> dict[Component, float]:
        """Return the limits of growth per minute for a trainer."""
        return GROWTH_DEFAULTS | readings.growth_limits()
