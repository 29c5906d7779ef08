"""Verdicts on a recorded run: on levels from cycle to cycle, and those of the alert rules.

A level continues to rise by the same test as a named container, see `explain.series`. The least rise that
matters is that of the rules, or a limit that the trainer declares; for live objects at least a tenth. If the
rules can judge memory, they decide.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from heapwatch.judge.judge import Verdicts, judge
from heapwatch.judge.leak import WINDOWS
from heapwatch.judge.level import LevelSeries
from heapwatch.judge.observed import Series, observed
from heapwatch.judge.rates import STEP_SECONDS, median_slope
from heapwatch.judge.trainer import PAST_BOUND
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Point, Run
from heapwatch.text.numbers import size

# (number of the cycle, level), in rising order of the number; the first is the baseline.
Points = Sequence[tuple[float, float]]

# Levels, and seconds of a rise; with fewer, a leak and a warm-up look the same.
_FEWEST, _SHORTEST_SECONDS = 6, 120.0
_SLOWED = 0.5  # rate of the last quarter, as a share of the overall rate
_FITTED = 64  # levels, and places of a bend, that are tried at most
_WITHIN = 0.25  # cycles by which the bend may be found too early
_MOST_AN_ITEM = 8  # largest number of objects in an item of a buffer
# Points further apart say too little of the shortest ordinary window: an eighth of it, as for the rules.
_MOST_SECONDS = 60 * WINDOWS[0] / 8


@dataclass(frozen=True)
class Judgement:
    """The verdict on a level, with its reason in words: from the first level to the last.

    `per_cycle` is its rise, `since` the cycle in which that began; both are 0 if it did not rise.
    """

    verdict: Word
    baseline: float
    current: float
    per_cycle: float = 0.0
    since: int = 0
    reason: str = ""

    @property
    def change(self) -> float:
        """Difference between the last and the first level."""
        return self.current - self.baseline


@dataclass(frozen=True)
class Terms:
    """The conditions for judging a level.

    Attributes:
        least: the least rise that matters.
        unit: name of a cycle.
        cycle_seconds: how long a cycle takes.
        bound: the largest allowed level.
        limit: growth in a cycle that is allowed.
        by_rules: the result of the rules; None if they cannot judge.
        decided: whether only the rules decide, as far as they can judge.
        filled: what bounded buffers held at the same times; it explains a rise that follows it.
        share: least part of the rise that these explain.

    """

    least: float
    unit: str
    cycle_seconds: float
    bound: float | None = None
    limit: float | None = None
    by_rules: bool | None = None
    decided: bool = False
    filled: Points = ()
    share: float = 1 / _MOST_AN_ITEM


def judged(series: Points, terms: Terms) -> Judgement:
    """Judge a level."""
    level = LevelSeries()
    for cycle, value in series:
        level.add(cycle, value)
    began = level.rise_began()
    growth = level.growth(began)
    baseline, current = series[0][1], series[-1][1]
    risen = growth.total if growth.span else max(0.0, current - baseline)
    rate = growth.per_second
    since = next((int(cycle) for cycle, _ in series if cycle > began and cycle > series[0][0]), 0)
    bend = series[0][0]
    if (risen > terms.least or terms.by_rules) and len(series) > 2:
        bend, rate = _bend(series)
        since = max(math.floor(bend + _WITHIN) + 1, int(series[0][0]) + 1)

    def verdict(word: Word, reason: str = "") -> Judgement:
        rises = word not in ("healthy", "warm-up")
        return Judgement(
            word, baseline, current, rate if rises else 0.0, since if word != "healthy" else 0, reason
        )

    if terms.bound is not None and current > PAST_BOUND * terms.bound:
        rises = f", {each(rate, terms.unit)}" if rate > 0 else ""
        return verdict("leak", f"past its bound of {terms.bound:.0f}{rises}")
    if terms.by_rules:
        return verdict(
            "leak", "rises, and does not slow down" if terms.decided or not rate else each(rate, terms.unit)
        )
    if risen <= terms.least:
        return verdict("healthy")
    if _fills(series, terms, bend, lasting=growth.rising):
        return verdict("filling", "buffers that fill explain it")
    if sum(cycle >= began for cycle, _ in series) < _FEWEST:
        return verdict("too early", f"too few {terms.unit}s to distinguish it from a warm-up")
    lasted = (series[-1][0] - max(began, series[0][0])) * terms.cycle_seconds
    if terms.limit is terms.bound is None and lasted < _SHORTEST_SECONDS:
        return verdict("too early", "rises for less than two minutes")
    if not growth.rising:
        slowed = growth.lasting < _SLOWED
        return verdict("warm-up", "rose and slows down") if slowed else verdict("growing", "rises unevenly")
    if terms.bound is not None:
        return verdict("filling", f"within its bound of {terms.bound:.0f}")
    if terms.limit is not None and rate <= terms.limit:
        return verdict("growing", f"within its limit of {size(terms.limit)}/{terms.unit}")
    if terms.decided and terms.by_rules is False and terms.limit is None:
        return verdict("growing", "rises, but not as steadily as a leak")
    if terms.limit is not None:
        return verdict("leak", f"over its limit of {size(terms.limit)}/{terms.unit}")
    return verdict("leak", each(rate, terms.unit))


def _bend(series: Points) -> tuple[float, float]:
    """The cycle after which the level rises, and by how much a cycle: a constant, then a straight line.

    Least squares of the level's floor, so that a level that was not read for some cycles before or after the
    bend, as on a busy machine, is placed between its readings.
    """
    every = math.ceil(len(series) / _FITTED)
    floor, lowest = [], math.inf
    for cycle, level in series[::-1][::every]:
        lowest = min(lowest, level)
        floor.append((cycle, lowest))
    first, last = series[0][0], series[-1][0]
    step = (last - first) / _FITTED
    _, bend = min(_hinge(floor, first + step * place) for place in range(_FITTED))
    _, bend = min(_hinge(floor, bend + step * (place / 8 - 1)) for place in range(17))
    risen = [point for point in reversed(floor) if point[0] > bend]
    return max(first, bend), median_slope(risen if len(risen) > 2 else floor[::-1])


def _hinge(floor: Points, bend: float) -> tuple[float, float]:
    """Squared error of the best line that rises from this cycle on, and the cycle."""
    after = [max(0.0, cycle - bend) for cycle, _ in floor]
    middle, mean = fmean(after), fmean(level for _, level in floor)
    spread = sum((passed - middle) ** 2 for passed in after)
    if not spread:
        return math.inf, bend
    off = [(passed - middle, level - mean) for passed, (_, level) in zip(after, floor, strict=True)]
    slope = sum(passed * level for passed, level in off) / spread
    return sum((level - slope * passed) ** 2 for passed, level in off), bend


def each(rate: float, unit: str) -> str:
    """Such as `increasing by 16 each generation`."""
    count = f"{rate:.0f}" if rate >= 10 or rate == int(rate) else f"{rate:.1f}"
    return f"increasing by {count} each {unit}"


def _fills(series: Points, terms: Terms, bend: float, *, lasting: bool) -> bool:
    """Whether the buffers took enough for the rise from its bend on; if it lasts, also in the last half."""
    held = dict(terms.filled)
    before = max((number for number, (cycle, _) in enumerate(series) if cycle <= bend), default=0)
    for part in (series, series[before:], series[len(series) // 2 :])[: 2 + lasting]:
        risen = part[-1][1] - part[0][1]
        took = held.get(part[-1][0], 0.0) - held.get(part[0][0], 0.0)
        if risen > 0 and took < terms.share * risen:
            return False
    return bool(held)


def verdicts_of(run: Run) -> Verdicts | None:
    """The verdicts of the leak rules on a run; None if the points of its second half are too far apart."""
    times = [point.time for point in run.points]
    if len(times) < 2:
        return None
    middle = (times[0] + times[-1]) / 2
    if median(later - before for before, later in pairwise(times) if later >= middle) > _MOST_SECONDS:
        return None
    samples: dict[Series, list[tuple[float, float]]] = defaultdict(list)
    for point in run.points:
        for series, value in _exposed(point, times[0]):
            samples[series].append((point.time, value))
    return judge(observed(samples, times[0], int((times[-1] - times[0]) / STEP_SECONDS) + 1))


def _exposed(point: Point, start: float) -> list[tuple[Series, float]]:
    """What the trainer exposed at the point, as far as it is recorded."""
    found = [(Series("process_start_time_seconds"), start)]
    for name, label, value in (
        ("trainer_process_resident_memory_bytes", ("role", "trainer"), point.resident_bytes),
        ("trainer_process_virtual_memory_bytes", ("role", "trainer"), point.virtual_bytes),
        ("trainer_process_resident_memory_bytes", ("role", "worker"), point.worker_bytes),
        ("trainer_gpu_memory_allocated_bytes", ("device", "all"), point.gpu_allocated_bytes),
    ):
        if value is not None:
            found.append((Series(name, (label,)), value))
    for unit, count in point.progress.items():
        found.append((Series("trainer_progress_total", (("unit", unit),)), count))
    for name, buffer in point.buffers.items():
        found.append((Series("trainer_buffer_bytes", (("buffer", name),)), buffer.nbytes))
        if buffer.full_bytes is not None:
            found.append((Series("trainer_buffer_capacity_bytes", (("buffer", name),)), buffer.full_bytes))
    for name, count in point.objects.items():
        found.append((Series("trainer_objects", (("type", name),)), count))
    for name, count in point.items.items():
        if name not in point.bounds:
            found.append((Series("trainer_entities", (("type", name),)), count))
    for name, nbytes in point.sizes.items():
        found.append((Series("trainer_object_size_bytes", (("object", name),)), nbytes))
    return found
