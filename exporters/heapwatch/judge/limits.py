"""Every default limit, in one table. The rules, the console, `/performance_status` and the docs use it.

`python -m docs.limits` writes the table into `prometheus/rules/default_limits.yml` and `docs/alerting.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from heapwatch.judge.component import GROWN, MEMORY, Component

SEVERITIES = ("warning", "critical", "emergency")  # in rising order
Limit = TypeVar("Limit")

# Levels by severity; growth by period (minute, episode, epoch, generation). Bytes or items.
Limits = Mapping[Component, Mapping[str, float]]

ALL_MEMORY = Component("memory", "all")  # of the trainer and its child processes together
BODIES = Component("bodies", "all")

# For every profile: shares of the memory that the trainer can use, that is, its present memory and what is
# free below the memory limit (cgroup or RAM).
MEMORY_SHARES: Mapping[str, float] = MappingProxyType({"warning": 0.85, "critical": 0.93, "emergency": 0.97})


@dataclass(frozen=True)
class Profile:
    """Limits for one sort of trainer, in addition to the shares of memory; component "" means each one."""

    levels: Limits = field(default_factory=dict)
    growth: Limits = field(default_factory=dict)


_WALKER = Profile(
    levels={
        # A level at its limit exceeds it: the document has an emergency above 1,500 bodies.
        MEMORY: {"warning": 1e9, "critical": 1.5e9, "emergency": 2e9},
        BODIES: {"warning": 500, "critical": 1000, "emergency": 1501},
        Component("bodies", "static"): {"critical": 300},
        Component("entities", "food_sources"): {"warning": 50},
    },
    growth={
        MEMORY: {"minute": 20e6},
        BODIES: {"minute": 10},
        Component("bodies", ""): {"minute": 10},
        Component("entities", "food_sources"): {"minute": 5},
    },
)

_ERL_TRADING = Profile(
    levels={
        MEMORY: {"warning": 40e9, "critical": 100e9},
        GROWN: {"warning": 35e9, "critical": 100e9},
        Component("gpu_memory", ""): {"warning": 20e9},
        Component("objects", "TradingEnvironment"): {"warning": 3},
        Component("objects", "DDPGAgent"): {"warning": 30},
        Component("events", "upload_queue"): {"warning": 51},
    },
    growth={MEMORY: {"generation": 5e9}},
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        # Any trainer: shares of memory and the verdict, and no absolute limits.
        "default": Profile(),
        "walker": _WALKER,
        "walker-aggressive": Profile(
            levels={
                **_WALKER.levels,
                MEMORY: {"warning": 600e6, "critical": 900e6, "emergency": 2e9},
                BODIES: {"warning": 300, "critical": 500, "emergency": 1501},
            },
            growth=_WALKER.growth,
        ),
        "erl-trading": _ERL_TRADING,
        # What is left to grow once its leaks are fixed.
        "erl-trading-aggressive": Profile(levels=_ERL_TRADING.levels, growth={MEMORY: {"generation": 500e6}}),
        "metta": Profile(growth={Component("object_size", ""): {"epoch": 5e6}}),
        "fire-dqn": Profile(
            levels={
                # One more than the document's bounds, which it keeps at every step.
                Component("events", "losses"): {"warning": 1001},
                Component("events", "rewards"): {"warning": 1001},
                Component("events", "step_times"): {"warning": 101},
                Component("events", "collection_times"): {"warning": 21},
                Component("buffer", "experience"): {"warning": 2001},
            },
            # Memory should be the same after each of more than sixty episodes.
            growth={MEMORY: {"episode": 10e6}, Component("gpu_memory", ""): {"episode": 10e6}},
        ),
    }
)
ALIASES: Mapping[str, str] = MappingProxyType({"aggressive": "walker-aggressive"})
PROFILE_NAMES = (*PROFILES, *ALIASES)


def profile_named(name: str) -> Profile:
    """Return a profile by its name or alias. Raises ValueError for an unknown one."""
    try:
        return PROFILES[ALIASES.get(name, name)]
    except KeyError:
        raise ValueError(f"profile {name!r} is not known; allowed: {', '.join(PROFILE_NAMES)}") from None


@dataclass(frozen=True)
class ExceededLimit:
    """A level or a growth rate over its limit.

    For kind `growth`, `per` is the period of both: `minute`, `episode`, `epoch` or `generation`. For kind
    `leak` it is growth per minute with a limit of 0, or the number of items of a container with its bound.
    For kind `graphs` it is the number of tensors in a buffer that keep their autograd graphs.
    """

    severity: str
    kind: str
    resource: str
    component: str
    value: float
    limit: float
    per: str = ""


def limit_of(component: Component, limits: Mapping[Component, Limit]) -> Limit | None:
    """Return the limit of a component, else the limit for each component of its resource."""
    return limits.get(component, limits.get(Component(component.resource, "")))


def threshold_alert(component: Component, level: float, limits: Mapping[str, float]) -> ExceededLimit | None:
    """Return the alert of the highest severity whose limit the level has reached."""
    for severity in reversed(SEVERITIES):
        limit = limits.get(severity)
        if limit is not None and level >= limit:
            return ExceededLimit(severity, "threshold", component.resource, component.name, level, limit)
    return None


def growth_alert(
    component: Component, rate: float | None, limit: float, per: str = "minute"
) -> ExceededLimit | None:
    """Return the alert of a growth rate over its limit, both per minute or per another period."""
    if rate is None or rate <= limit:
        return None
    return ExceededLimit("warning", "growth", *component, rate, limit, per)
