"""The verdicts of the alert rules, in Python: on recorded levels, and on a trainer's last hours."""

from __future__ import annotations

import math
import time as clock
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heapwatch.judge.leak import Growth, growth_of
from heapwatch.judge.observed import (
    MATURE_MINUTES,
    OBSERVED,
    TOLERANCE,
    Observed,
    Process,
    Series,
    observed,
    retention,
    retention_continues,
)
from heapwatch.collectors.readings import MEMORY, PAST_BOUND, Component, ExceededLimit, Readings
from heapwatch.judge.rates import STEP_SECONDS, Values, at, highest, lowest, steps
from heapwatch.judge.verdict import Word

RETAINED_SHARE = 2.0  # growth below this multiple of the growth of retention is called retention
RETAINED_HALF = 0.92  # least growth of retention in eight minutes, as a share of the eight minutes before
HELD_EVALUATIONS = steps(20)  # number of evaluations before the last that its verdict depends on
_WATCH_GAP, _FOR, _BOUND_EVALUATIONS = steps(10), steps(1), 6
# A buffer keeps graphs if at least this share of its items has had them for this long.
_GRAPH_MINUTES, _GRAPH_SHARE = 10, 0.5
_MOST_EVALUATIONS = 480  # four hours
_SHARE = 0.002  # share of the time for verdicts, which take 60 ms for 30 levels over four hours
_MOST_SERIES = 500  # further series are not judged


@dataclass(frozen=True)
class Verdicts:
    """The verdicts at each evaluation; None where there is no finding.

    Attributes:
        levels: every level.
        leaks: growth per minute of each level that leaks.
        past_bound: the items of each container that holds more than its declared capacity allows.
        capacity: the declared capacity of each container, in items.
        graphs: the number of tensors with autograd graphs in each buffer that keeps them.
        retained: growth of memory per minute that retention explains.
        watched_minutes: how long the process had been watched.

    """

    levels: Mapping[Component, Values]
    leaks: Mapping[Component, Values]
    past_bound: Mapping[Component, Values]
    capacity: Mapping[Component, Values]
    graphs: Mapping[Component, Values]
    retained: Values
    watched_minutes: Values

    @property
    def word(self) -> Word:
        """The verdict at the last evaluation; no slow leak can be excluded before the process is mature."""
        if self.found():
            return "leak"
        return "too early" if self.waits else "healthy"

    @property
    def seen(self) -> bool:
        """Whether a process was seen at the last evaluation."""
        return bool(self.watched_minutes) and self.watched_minutes[-1] is not None

    @property
    def waits(self) -> str:
        """Such as "12 of 24 minutes"; empty when slow leaks can be distinguished from warm-ups."""
        watched = at(self.watched_minutes, len(self.watched_minutes) - 1) or 0.0
        return f"{watched:.0f} of {MATURE_MINUTES} minutes" if watched < MATURE_MINUTES else ""

    def found(self) -> list[Component]:
        """All that leaks at the last evaluation."""
        return sorted({*self.leaking(), *self.longer_than_allowed(), *self.holding_graphs()})

    def leaking(self) -> dict[Component, float]:
        """The levels that leak at the last evaluation, with their growth per minute."""
        return _last(self.leaks)

    def longer_than_allowed(self) -> dict[Component, float]:
        """The containers that exceed their bound at the last evaluation, with their number of items."""
        return _last(self.past_bound)

    def holding_graphs(self) -> dict[Component, float]:
        """The buffers that keep autograd graphs at the last evaluation, with the number of such tensors."""
        return _last(self.graphs)

    def alerts(self) -> list[ExceededLimit]:
        """The leaks at the last evaluation, with the severities of the rules."""
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
    """Judge every level at every evaluation from `since` on; the last needs HELD_EVALUATIONS before it."""
    growth = growth_of(observed.process, observed.levels, since)
    watched = _watched(observed.process)
    return Verdicts(
        levels=observed.levels,
        leaks={component: grown.verdicts for component, grown in growth.items()},
        past_bound={component: _past(*bounded) for component, bounded in observed.bounded.items()},
        capacity={component: capacity for component, (_, capacity) in observed.bounded.items()},
        graphs={component: _kept(*held, watched) for component, held in observed.graphs.items()},
        retained=_retained(observed.process, growth.get(MEMORY)),
        watched_minutes=watched,
    )


def _past(level: Values, capacity: Values) -> Values:
    """The level, once it has exceeded its bound for the `for` of the alert."""
    return _lasting(
        held if held is not None and bound is not None and held > PAST_BOUND * bound else None
        for held, bound in zip(lowest(level, _BOUND_EVALUATIONS), capacity, strict=True)
    )


def _kept(tensors: Values, items: Values, watched: Values) -> Values:
    """The lowest number of tensors with graphs in ten minutes, where it is a large share of the items."""
    many = steps(_GRAPH_MINUTES)
    kept: Values = []
    for low, high, minutes in zip(lowest(tensors, many), highest(items, many), watched, strict=True):
        known = low is not None and high is not None and minutes is not None and minutes >= _GRAPH_MINUTES
        kept.append(low if known and low > _GRAPH_SHARE * high else None)  # type: ignore[operator]
    return _lasting(kept)


def _retained(process: Process, growth: Growth | None) -> Values:
    if growth is None:
        return [None] * len(process.time)
    retained: Values = []
    goes_on = retention_continues(process, RETAINED_HALF)
    for found, verdict, least, kept, continues in zip(
        growth.found, growth.verdicts, growth.explained, retention(process), goes_on, strict=True
    ):
        explains = (
            found is not None
            and verdict is None
            and continues
            and least - TOLERANCE * kept <= found < RETAINED_SHARE * kept
        )
        retained.append(found if explains else None)
    return _lasting(retained)


def _lasting(values: Iterable[float | None]) -> Values:
    """The values, with None until each evaluation had one for the `for` of the alerts."""
    lasting: Values = []
    since = 0
    for value in values:
        since = 0 if value is None else since + 1
        lasting.append(value if since > _FOR else None)
    return lasting


def _watched(process: Process) -> Values:
    """Minutes since the process was first seen; they start again after ten minutes without samples."""
    minutes: Values = []
    since: float | None = None
    seen = 0
    for index, (now, start) in enumerate(zip(process.time, process.start, strict=True)):
        if start is not None:
            if since is None or since < start or index - seen > _WATCH_GAP:
                since = now
            seen = index
        minutes.append(None if start is None or since is None else (now - since) / 60)
    return minutes


def _last(verdicts: Mapping[Component, Values]) -> dict[Component, float]:
    return {
        component: values[-1] for component, values in verdicts.items() if values and values[-1] is not None
    }


class LiveVerdicts:
    """Keeps a sample of every series each 30 seconds (4 KB a series) and judges them on request."""

    def __init__(self) -> None:
        self._times: array[float] = array("d")
        self._series: dict[Series, array[float]] = {}
        self._judged: Verdicts | None = None
        self._due = -math.inf

    def observe(self, time: float, readings: Readings) -> None:
        """Add the readings of `time` (seconds of one clock); all are dropped if the clock was set back."""
        if self._times and time < self._times[-1]:
            self._times, self._series, self._due = array("d"), {}, -math.inf
        if self._times and self._evaluation(time) == self._evaluation(self._times[-1]):
            self._drop_last()  # only the newest sample before an evaluation counts
        if time >= self._due:
            self._judged = None
        values = {
            Series(name, tuple(sorted(labels.items()))): value
            for name in OBSERVED
            for labels, value in readings.samples(name)
        }
        many = len(self._times)
        for series in values:
            if series not in self._series and len(self._series) < _MOST_SERIES:
                self._series[series] = array("d", [math.nan]) * many
        self._times.append(time)
        for series, column in self._series.items():
            column.append(values.get(series, math.nan))
        if many >= _MOST_EVALUATIONS + _MOST_EVALUATIONS // 8:
            self._forget(many + 1 - _MOST_EVALUATIONS)

    def verdicts(self) -> Verdicts:
        """The verdicts on the samples so far; they may be a little older to save time."""
        if self._judged is None:
            began = clock.thread_time()
            start, many = 0.0, 0
            if self._times:
                # After a gap of days the evaluations before it would be too many.
                start = max(self._times[0], self._times[-1] - 2 * _MOST_EVALUATIONS * STEP_SECONDS)
                many = math.ceil((self._times[-1] - start) / STEP_SECONDS) + 1
            samples = {
                series: [pair for pair in zip(self._times, column, strict=True) if not math.isnan(pair[1])]
                for series, column in self._series.items()
            }
            self._judged = judge(observed(samples, start, many), since=many - HELD_EVALUATIONS)
            self._due = start + (many - 1) * STEP_SECONDS + (clock.thread_time() - began) / _SHARE
        return self._judged

    def _evaluation(self, time: float) -> int:
        return math.ceil((time - self._times[0]) / STEP_SECONDS)

    def _drop_last(self) -> None:
        for column in (self._times, *self._series.values()):
            column.pop()

    def _forget(self, many: int) -> None:
        del self._times[:many]
        for series, column in list(self._series.items()):
            del column[:many]
            if all(map(math.isnan, column)):
                del self._series[series]
