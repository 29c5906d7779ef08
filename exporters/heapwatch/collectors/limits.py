"""Exports limits as series, so that one rule serves every trainer and panels draw the same values."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from prometheus_client import Metric

from heapwatch.collectors.families import gauge
from heapwatch.judge.limits import SEVERITIES, profile_named
from heapwatch.runtime.labels import MAX_NAMES, checked_name

RESOURCES = ("memory", "gpu_memory", "bodies", "entities", "events", "buffer", "objects", "object_size")


class LimitCollector:
    """The limits that a trainer declares, and the profile that selects the default limits."""

    name = "limits"

    def __init__(self, profile: str = "default") -> None:
        profile_named(profile)
        self._profile = profile
        self._limits: dict[tuple[str, str, str], float] = {}
        self._growth: dict[tuple[str, str, str], float] = {}

    def set_limits(self, resource: str, component: str, limits: dict[str, float | None]) -> None:
        """Set limits by severity; a later call replaces them.

        Raises:
            ValueError: for an unknown resource, an invalid component, too many components, no limit, a limit
                that is no finite number above 0, or limits that do not rise with the severity.

        """
        checked = _checked_limits("limit", resource, component, limits)
        rising = [checked[severity] for severity in SEVERITIES if severity in checked]
        if rising != sorted(rising):
            raise ValueError(
                f"the limits of {resource} must rise from warning to critical to emergency, got {checked}"
            )
        _check_number(self._limits, resource, component)
        self._limits |= {(resource, component, severity): value for severity, value in checked.items()}

    def set_growth_limits(self, resource: str, component: str, limits: dict[str, float | None]) -> None:
        """Set growth limits by period; a later call replaces them.

        Raises:
            ValueError: as for `set_limits`.

        """
        checked = _checked_limits("growth limit", resource, component, limits)
        _check_number(self._growth, resource, component)
        self._growth |= {(resource, component, period): value for period, value in checked.items()}

    def collect(self) -> Iterable[Metric]:
        """Yield the limits."""
        yield gauge(
            "trainer_limit",
            "Level at which an alert of this severity fires; component '' means any.",
            ("resource", "component", "severity"),
            self._limits.copy(),
        )
        yield gauge(
            "trainer_growth_limit",
            "Growth per minute, episode, epoch or generation above which an alert fires.",
            ("resource", "component", "per"),
            self._growth.copy(),
        )
        yield gauge(
            "trainer_limit_profile",
            "1 for the profile whose default limits apply.",
            "profile",
            {self._profile: 1},
        )


def _check_number(limits: dict[tuple[str, str, str], float], resource: str, component: str) -> None:
    components = {name for of, name, _ in limits if of == resource}
    if component not in components and len(components) >= MAX_NAMES:
        raise ValueError(
            f"{MAX_NAMES} components of {resource} have limits; {component!r} can have none of its own: "
            "a limit without a component applies to all"
        )


def _checked_limits(
    kind: str, resource: str, component: str, limits: dict[str, float | None]
) -> dict[str, float]:
    if resource not in RESOURCES:
        raise ValueError(f"resource {resource!r} is not known; allowed: {', '.join(RESOURCES)}")
    if component != "":
        checked_name("component", component)
    values = {key: value for key, value in limits.items() if value is not None}
    if not values:
        raise ValueError(f"a {kind} of {resource} needs at least one of {', '.join(limits)}")
    for key, value in values.items():
        if isinstance(value, (bool, str)) or not hasattr(type(value), "__float__"):
            raise ValueError(f"the {kind} {key} of {resource} must be a number, got {value!r}")
        if not 0 < value < math.inf or value > sys.float_info.max:
            raise ValueError(f"the {kind} {key} of {resource} must be finite and above 0, got {value!r}")
    return {key: float(value) for key, value in values.items()}
