"""The judge of one trainer: what leaks now, of all levels that are measured every 30 seconds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple

from heapwatch.judge.component import BYTES, MEMORY, Component, material
from heapwatch.judge.explained import BUFFER_SHARE, ExplainedGrowth
from heapwatch.judge.growth import CYCLES, lasts
from heapwatch.judge.measured import FAST_STEPS, LOST_STEPS, STEP_SECONDS, WINDOWS, MeasuredLevel, Ring, steps

MATURE_MINUTES = 24  # after which a slow leak and a warm-up look different
_MATURE_CYCLES, _MATURE_SECONDS = 2, 2700.0
_YOUNG_STEPS, _YOUNG_CYCLES = 11, 4  # steps of the judge; cycles, or steps of a program that counts no cycles
_RESET_STEPS = steps(4)  # after a cleanup, for which marks begin anew
_HOLD_STEPS = steps(15)  # for which a leak is held after its last growth
_SPEEDS = (0.5, 2.0)  # limits of a change of the program's speed that is taken into account
_CYCLE_SECONDS = 3600.0  # that three cycles last at least to be judged by their ends
_STALE_SECONDS = 45.0  # oldest reading for a verdict over six minutes; for a longer window an eighth of it
PAST_BOUND = 1.1  # times the bound that a container declares: it may be trimmed only every so often
_RETAINED = Component("memory", "retained")
_RETAINED_SHARE = 2.0  # memory that grows by less than this times what malloc keeps: malloc keeps it
_BOUND_STEPS = steps(4)
_GRAPH_STEPS, _FULL_GRAPH_STEPS, _GRAPH_SHARE = steps(10), steps(2), 0.5
# Least number of rises in a row, and share of a count a minute, that are not called healthy.
_RISES, _RISING_SHARE = 3, 0.01
_MOST_LEVELS = 500  # further ones are not judged

Reason = Literal["growth", "bound", "graphs", "retained"]


class Leak(NamedTuple):
    """Something that leaks now.

    Attributes:
        component: what leaks.
        reason: lasting growth; more items than its declared bound; tensors that keep their autograd graphs;
            or freed memory that the C allocator keeps.
        per_minute: its growth, in bytes or items; may be 0 where growth is not the reason.
        amount: bytes or items now; tensors for `graphs`.
        bound: the declared bound in items; None if it has none.

    """

    component: Component
    reason: Reason
    per_minute: float
    amount: float
    bound: float | None = None


class Rise(NamedTuple):
    """A count that rose at each of the last readings, which is too little to call it a leak."""

    component: Component
    per_minute: float
    amount: float
    minutes: float


@dataclass(frozen=True)
class Sample:
    """What is known of a trainer at one time; what is unknown is None or absent.

    Attributes:
        levels: every level that is judged, in bytes or items. Memory of the trainer without the bytes in
            bounded buffers; no containers with a bound.
        age_seconds: age of the process.
        cycles: number of ended generations, else of epochs, else of episodes.
        steps: number of training steps.
        cleanups: number of emergency cleanups and requested cleanups.
        buffer_bytes: bytes in buffers that have a bound.
        retained: freed memory that malloc keeps, in bytes.
        virtual: virtual memory of the trainer's process, in bytes.
        bounded: number of items and declared bound of each container that has one.
        graphs: number of tensors with autograd graphs and number of items of each buffer.
        to_fill: bytes that each declared buffer will still take until it is full.
        reading_ages: seconds since a resource, or one of its components, was read, where it is not read
            each time.

    """

    levels: Mapping[Component, float] = field(default_factory=dict)
    age_seconds: float | None = None
    cycles: float | None = None
    steps: float | None = None
    cleanups: float | None = None
    buffer_bytes: float | None = None
    retained: float | None = None
    virtual: float | None = None
    bounded: Mapping[Component, tuple[float, float]] = field(default_factory=dict)
    graphs: Mapping[Component, tuple[float, float]] = field(default_factory=dict)
    to_fill: Mapping[str, float] = field(default_factory=dict)
    reading_ages: Mapping[str | Component, float] = field(default_factory=dict)


class TrainerJudge:
    """Judges a trainer every 30 seconds, in bounded memory: about 3 KB a level."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.leaks: tuple[Leak, ...] = ()
        self._judged_at: float | None = None
        self._watched = -1  # steps since the first sample
        self._levels: dict[Component, MeasuredLevel] = {}
        self._found: dict[Component, tuple[int, Reason, float]] = {}
        self._ends: dict[Component, deque[tuple[float, float, float]]] = {}
        self._ages: defaultdict[str | Component, Ring] = defaultdict(Ring)
        self._over: Counter[Component] = Counter()
        self._trimmed: set[Component] = set()
        self._graphs: Counter[Component] = Counter()
        self._steps, self._cycles, self._cleanups = (Ring(_RESET_STEPS + FAST_STEPS) for _ in range(3))
        self._explained, self._retained = ExplainedGrowth(), MeasuredLevel()

    @property
    def watched_minutes(self) -> float:
        """For how long the trainer has been watched."""
        return max(0, self._watched) * STEP_SECONDS / 60

    def is_due(self, time: float) -> bool:
        """Whether 30 seconds have passed since the last sample."""
        return self._judged_at is None or not 0 <= time - self._judged_at < STEP_SECONDS

    def observe(self, time: float, sample: Sample) -> tuple[Leak, ...]:
        """Add a sample and judge; `time` in seconds of one clock. Returns what leaks now.

        After ten minutes without samples, or if the clock was set back, it begins anew.
        """
        missed = 0 if self._judged_at is None else round((time - self._judged_at) / STEP_SECONDS) - 1
        if missed > LOST_STEPS or missed < -1:
            self._forget()
            missed = 0
        for _ in range(missed):
            self._add(Sample())
        self._judged_at = time
        self._add(sample)
        self._add_cycle_ends(time, sample)
        grown = (self._grown(component, level, sample) for component, level in self._levels.items())
        self.leaks = (
            *(leak for leak in grown if leak is not None),
            *self._past_bound(sample),
            *self._holding_graphs(sample),
        )
        return self.leaks

    def rising(self) -> list[Rise]:
        """Counts that rose at each of the last readings to their highest, the fastest first."""
        lasting = []
        for component, level in self._levels.items():
            seen = level.levels.last(steps(MATURE_MINUTES))
            rises = len(list(takewhile(lambda pair: pair[0] > pair[1], pairwise(reversed(seen)))))
            if component.resource in BYTES or not rises or rises < min(_RISES, len(seen) - 1):
                continue
            minutes = rises * STEP_SECONDS / 60
            rate = (seen[-1] - seen[-1 - rises]) / minutes
            if seen[-1] == max(seen) and rate > _RISING_SHARE * seen[-1]:
                lasting.append(Rise(component, rate, seen[-1], minutes))
        return sorted(lasting, key=lambda rise: -rise.per_minute)

    @property
    def counts(self) -> bool:
        """Whether anything but memory is watched."""
        return any(component.resource not in BYTES for component in self._levels)

    def _add(self, sample: Sample) -> None:
        self._watched += 1
        for ring, value in (
            (self._steps, sample.steps),
            (self._cycles, sample.cycles),
            (self._cleanups, sample.cleanups),
        ):
            ring.add(ring.ago(0) if value is None else value)
        reset = len(set(self._cleanups.last(_RESET_STEPS + 1))) > 1
        if len(set(self._cleanups.last(2))) > 1:  # how a count rose before says nothing about now
            for level in self._levels.values():
                level.levels = Ring(steps(max(WINDOWS)))
        for component in sample.levels:
            if component not in self._levels and len(self._levels) < _MOST_LEVELS:
                self._levels[component] = MeasuredLevel()
        for component, level in list(self._levels.items()):
            level.add(sample.levels.get(component), reset=reset)
            if level.is_lost:
                del self._levels[component]
                self._found.pop(component, None)
                self._ends.pop(component, None)
        if reset:
            self._ends.clear()
        for read, age in sample.reading_ages.items():
            self._ages[read].add(age)
        self._retained.add(sample.retained, reset=reset)
        self._explained.add(sample.buffer_bytes, sample.retained, sample.virtual)

    def _grown(self, component: Component, level: MeasuredLevel, sample: Sample) -> Leak | None:
        """The leak of a level that grows lastingly, or did so less than a quarter of an hour ago."""
        growths = self._growths(component, level, sample)
        reason: Reason = "growth"
        if component == MEMORY and growths:
            explained = self._explained.per_minute(level.gains)
            unexplained = [growth for growth in growths if growth >= explained]
            if not unexplained and self._is_retained(level, max(growths), sample):
                reason, unexplained = "retained", growths
            growths = unexplained
        if growths:
            self._found[component] = self._watched, reason, max(growths)
        found_at, reason, growth = self._found.get(component, (-_HOLD_STEPS - 1, reason, 0.0))
        now = level.levels.last(1)
        if self._watched - found_at > _HOLD_STEPS or not now:
            return None
        return Leak(component, reason, growth, now[0])

    def _is_retained(self, level: MeasuredLevel, growth: float, sample: Sample) -> bool:
        """Whether growth of memory is that of freed memory which malloc keeps, and that lasts, too."""
        kept = max(self._growths(_RETAINED, self._retained, sample), default=0.0)
        others = self._explained.per_minute(level.gains, with_retention=False)
        return others <= growth < _RETAINED_SHARE * kept

    def _growths(self, component: Component, level: MeasuredLevel, sample: Sample) -> list[float]:
        """Growth per minute by each of the tests that find any."""
        ages = self._ages.get(component, self._ages.get(component.resource))
        maturity = self._maturity(component, sample)
        mature = maturity == 2 and component != _RETAINED  # what malloc keeps levels off slowly
        growths = []
        for minutes in WINDOWS:
            stale = max(ages.last(steps(minutes)), default=0.0) if ages else 0.0
            watched = self._watched >= steps(1.5 * minutes) and (minutes > WINDOWS[0] or mature)
            if watched and stale <= minutes * 60 / 8:
                growths.append(level.in_window(component, minutes))
        stale = max(ages.last(FAST_STEPS), default=0.0) if ages else 0.0
        if maturity and stale <= _STALE_SECONDS and self._watched >= FAST_STEPS:
            growths.append(level.fast(component, self._steps, self._speed(), mature=mature))
        growths.append(self._by_cycles(component))
        return [growth for growth in growths if growth is not None]

    def _maturity(self, component: Component, sample: Sample) -> int:
        """2: past start-up and two cycles; 1: younger, but training and past four cycles; 0: too early."""
        cycles, age = self._cycles.ago(0), sample.age_seconds or 0.0
        started = cycles is None or cycles >= _MATURE_CYCLES or age > _MATURE_SECONDS
        if started and self._watched >= steps(MATURE_MINUTES):
            return 2
        return int(self._watched >= _YOUNG_STEPS and self._has_trained(component))

    def _has_trained(self, component: Component) -> bool:
        """Whether four cycles (steps, if it counts no cycles) have ended, and it trained six minutes ago.

        Of a program that counts nothing that is not known. Its memory is judged nevertheless.
        """
        counts = [ring for ring in (self._cycles, self._steps) if ring.ago(0) is not None]
        trained = any((ring.ago(_YOUNG_STEPS) or 0.0) > 0 for ring in counts)
        if not counts:
            return component.resource in BYTES
        return trained and (counts[0].ago(0) or 0.0) >= _YOUNG_CYCLES

    def _speed(self) -> float | None:
        """Steps in the last three minutes over steps in the three minutes before; None without steps."""
        now, middle, half, first = (self._steps.ago(back) for back in (0, 5, 6, 11))
        if now is None or middle is None or half is None or first is None or half <= first:
            return None
        slowest, fastest = _SPEEDS
        return min(max((now - middle) / (half - first), slowest), fastest)

    def _add_cycle_ends(self, time: float, sample: Sample) -> None:
        """Note the levels that memory and objects keep at the end of a cycle, and what buffers explain."""
        now, was = self._cycles.ago(0), self._cycles.ago(1)
        if now is None or was is None or now == was:
            return
        if now < was:
            self._ends.clear()
            return
        for component, level in self._levels.items():
            if component.resource in ("memory", "objects") and level.mark is not None:
                tolerated = BUFFER_SHARE * (sample.buffer_bytes or 0.0) if component == MEMORY else 0.0
                self._ends.setdefault(component, deque(maxlen=4)).append((time, level.mark, tolerated))

    def _by_cycles(self, component: Component) -> float | None:
        """Growth per minute over the last three cycles of together an hour or more."""
        ends: list[tuple[float, float, float]] = list(self._ends.get(component) or ())
        if len(ends) < 4:
            return None
        (began, first, filled), (ended, last, full) = ends[0], ends[-1]
        least = max(2 * material(component, first), full - filled)
        if ended - began < _CYCLE_SECONDS or last - first < least:
            return None
        rises = [later[1] - earlier[1] for earlier, later in pairwise(ends)]
        if not lasts(rises, CYCLES, largest_step=max(rises)):
            return None
        return 60 * (last - first) / (ended - began)

    def _past_bound(self, sample: Sample) -> Iterator[Leak]:
        """Containers that have held more items than their bound allows for some minutes."""
        cleaned = len(set(self._cleanups.last(2))) > 1
        for component, (items, bound) in sample.bounded.items():
            if items <= PAST_BOUND * bound:
                if self._over.pop(component, 0) and not cleaned:
                    self._trimmed.add(component)
                continue
            self._over[component] += 1
            if self._over[component] >= _BOUND_STEPS:
                yield Leak(component, "bound", 0.0, items, bound)

    def past_bound(self, bounded: Mapping[Component, tuple[float, float]]) -> list[Leak]:
        """Containers that hold more items than their bound allows, before this has lasted for minutes.

        One that was cut back by itself, and not by a cleanup, is trimmed every so often and not among them.
        """
        return [
            Leak(component, "bound", 0.0, items, bound)
            for component, (items, bound) in bounded.items()
            if items > PAST_BOUND * bound and component not in self._trimmed
        ]

    def _holding_graphs(self, sample: Sample) -> Iterator[Leak]:
        """Buffers of which many items have had their autograd graph for minutes; full ones sooner."""
        for component, (tensors, stored) in sample.graphs.items():
            if not tensors or tensors < _GRAPH_SHARE * stored:
                self._graphs.pop(component, None)
                continue
            self._graphs[component] += 1
            items, bound = sample.bounded.get(component, (0.0, math.inf))
            if self._graphs[component] >= (_FULL_GRAPH_STEPS if items >= bound else _GRAPH_STEPS):
                yield Leak(component, "graphs", 0.0, tensors, bound if bound < math.inf else None)
