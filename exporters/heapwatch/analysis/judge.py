"""What becomes of a trainer's levels: the verdicts of the rules, in Python, over what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heapwatch.analysis.bounds import PAST_BOUND
from heapwatch.analysis.explained import TOLERANCE, retention, retention_slows
from heapwatch.analysis.leak import MEMORY, Growth, growth_of
from heapwatch.analysis.observed import Observed
from heapwatch.analysis.process import MATURE_MINUTES, Process
from heapwatch.analysis.readings import Component, ExceededLimit
from heapwatch.analysis.timeline import Values, at, highest, lowest, steps

RETAINED_SHARE = 2.0  # of what malloc keeps more: growth below that is called retention
RETAINED_HALF = 0.92  # of the retention of eight minutes, in the next eight
HELD_LOOKS = steps(20)  # a verdict of the last look depends on no more of them
_WATCH_GAP, _FOR, _BOUND_LOOKS = steps(10), steps(1), 6
# For so long a buffer has not let go of graphs, and has had them in at least this share of its items.
_GRAPH_MINUTES, _GRAPH_SHARE = 10, 0.5


@dataclass(frozen=True)
class Verdicts:
    """The verdicts at each look; None where there is none.

    Attributes:
        leaks: growth per minute of each level that leaks.
        past_bound: the items of each container that holds more than its declared capacity allows.
        capacity: the declared capacity of each container, in items.
        graphs: the tensors of each buffer that keep their autograd graphs, where it does not let go of them.
        retained: growth of memory per minute that is freed memory which malloc keeps.
        watched_minutes: for how long the process of each look had been watched.

    """

    leaks: Mapping[Component, Values]
    past_bound: Mapping[Component, Values]
    capacity: Mapping[Component, Values]
    graphs: Mapping[Component, Values]
    retained: Values
    watched_minutes: Values

    @property
    def summary(self) -> str:
        """The outcome at the last look in a few words; empty where no process was seen."""
        if not self.watched_minutes or self.watched_minutes[-1] is None:
            return ""
        found = {*self.leaking(), *self.longer_than_allowed(), *self.holding_graphs()}
        if found:
            return ", ".join(f"{resource} {name}".strip() for resource, name in sorted(found))
        return self.too_early or f"none in {self.watched_minutes[-1]:.0f} minutes"

    @property
    def too_early(self) -> str:
        """Such as "too early, 12 of 24 minutes"; empty once slow growth can be told from a warm-up."""
        watched = at(self.watched_minutes, len(self.watched_minutes) - 1) or 0.0
        return f"too early, {watched:.0f} of {MATURE_MINUTES} minutes" if watched < MATURE_MINUTES else ""

    def leaking(self) -> dict[Component, float]:
        """The levels that leak at the last look, with their growth per minute."""
        return _last(self.leaks)

    def longer_than_allowed(self) -> dict[Component, float]:
        """The containers that are past their bound at the last look, with their items."""
        return _last(self.past_bound)

    def holding_graphs(self) -> dict[Component, float]:
        """The buffers that hold autograd graphs at the last look, with how many tensors do."""
        return _last(self.graphs)

    def alerts(self) -> list[ExceededLimit]:
        """What leaks at the last look, with the severities of the rules."""
        alerts = [
            ExceededLimit(
                "critical" if component.resource == "memory" else "warning", "leak", *component, growth, 0.0
            )
            for component, growth in self.leaking().items()
        ]
        for component, items in self.longer_than_allowed().items():
            capacity = self.capacity[component][-1] or 0.0
            alerts.append(ExceededLimit("warning", "leak", *component, items, PAST_BOUND * capacity))
        for component, tensors in self.holding_graphs().items():
            alerts.append(ExceededLimit("warning", "graphs", *component, tensors, 0.0))
        return alerts


def judge(observed: Observed, since: int = 0) -> Verdicts:
    """Judge every level at every look from `since` on; the last look needs HELD_LOOKS before it."""
    growth = growth_of(observed.process, observed.levels, since)
    watched = _watched(observed.process)
    return Verdicts(
        leaks={component: grown.verdicts for component, grown in growth.items()},
        past_bound={component: _past(*bounded) for component, bounded in observed.bounded.items()},
        capacity={component: capacity for component, (_, capacity) in observed.bounded.items()},
        graphs={component: _kept(*held, watched) for component, held in observed.graphs.items()},
        retained=_retained(observed.process, growth.get(MEMORY)),
        watched_minutes=watched,
    )


def _past(level: Values, capacity: Values) -> Values:
    """The level, once it has been past its bound for as long as the alert asks."""
    over: Values = []
    since = 0
    for held, bound in zip(lowest(level, _BOUND_LOOKS), capacity, strict=True):
        past = held is not None and bound is not None and held > PAST_BOUND * bound
        since = since + 1 if past else 0
        over.append(held if since > _FOR else None)
    return over


def _kept(tensors: Values, items: Values, watched: Values) -> Values:
    """The fewest tensors with graphs of the last minutes, where those are a share of the most items."""
    many = steps(_GRAPH_MINUTES)
    kept: Values = []
    since = 0
    for low, high, minutes in zip(lowest(tensors, many), highest(items, many), watched, strict=True):
        known = low is not None and high is not None and minutes is not None and minutes >= _GRAPH_MINUTES
        since = since + 1 if known and low > _GRAPH_SHARE * high else 0  # type: ignore[operator]
        kept.append(low if since > _FOR else None)
    return kept


def _retained(process: Process, growth: Growth | None) -> Values:
    if growth is None:
        return [None] * len(process.time)
    retained: Values = []
    since = 0
    slows = retention_slows(process, RETAINED_HALF)
    for found, verdict, least, kept, slowing in zip(
        growth.found, growth.verdicts, growth.explained, retention(process), slows, strict=True
    ):
        explains = (
            found is not None
            and verdict is None
            and not slowing
            and least - TOLERANCE * kept <= found < RETAINED_SHARE * kept
        )
        since = since + 1 if explains else 0
        retained.append(found if since > _FOR else None)
    return retained


def _watched(process: Process) -> Values:
    """Minutes since the process was first seen; ten minutes without it begin anew."""
    minutes: Values = []
    since: float | None = None
    seen = 0
    for look, (now, start) in enumerate(zip(process.time, process.start, strict=True)):
        if start is not None:
            if since is None or since < start or look - seen > _WATCH_GAP:
                since = now
            seen = look
        minutes.append(None if start is None or since is None else (now - since) / 60)
    return minutes


def _last(verdicts: Mapping[Component, Values]) -> dict[Component, float]:
    return {
        component: values[-1] for component, values in verdicts.items() if values and values[-1] is not None
    }
