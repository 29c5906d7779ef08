"""Limits as series, so that one rule works for every trainer and panels draw the same values."""

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
            ValueError: for an unknown resource, a bad component or one too many, no limit at all, one that is
                no finite number above 0, or limits that do not rise with the severity.

        """
        given = _given("limit", resource, component, limits)
        rising = [given[severity] for severity in SEVERITIES if severity in given]
        if rising != sorted(rising):
            raise ValueError(
                f"the limits of {resource} must rise from warning to critical to emergency, got {given}"
            )
        _check_number(self._limits, resource, component)
        self._limits |= {(resource, component, severity): value for severity, value in given.items()}

    def set_growth_limits(self, resource: str, component: str, limits: dict[str, float | None]) -> None:
        """Set growth limits by period; a later call replaces them.

        Raises:
            ValueError: as for `set_limits`.

        """
        given = _given("growth limit", resource, component, limits)
        _check_number(self._growth, resource, component)
        self._growth |= {(resource, component, period): value for period, value in given.items()}

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
    known = {name for of, name, _ in limits if of == resource}
    if component not in known and len(known) >= MAX_NAMES:
        raise ValueError(
            f"{MAX_NAMES} components of {resource} have limits; {component!r} can have none of its own: "
            "a limit without a component applies to all"
        )


def _given(kind: str, resource: str, component: str, limits: dict[str, float | None]) -> dict[str, float]:
    if resource not in RESOURCES:
        raise ValueError(f"resource {resource!r} is not known; allowed: {', '.join(RESOURCES)}")
    if component != "":
        checked_name("component", component)
    given = {key: value for key, value in limits.items() if value is not None}
    if not given:
        raise ValueError(f"a {kind} of {resource} needs at least one of {', '.join(limits)}")
    for key, value in given.items():
        if isinstance(value, (bool, str)) or not hasattr(type(value), "__float__"):
            raise ValueError(f"the {kind} {key} of {resource} must be a number, got {value!r}")
        if not 0 < value < math.inf or value > sys.float_info.max:
            raise ValueError(f"the {kind} {key} of {resource} must be finite and above 0, got {value!r}")
    return {key: float(value) for key, value in given.items()}
