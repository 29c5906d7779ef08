"""Verdicts on levels from cycle to cycle: live objects, items, object sizes, memory. Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from heapwatch.analysis.bounds import PAST_BOUND
from heapwatch.analysis.trend import Points, kept, last_half, noise, onset, rises, settled, slope, still_rises

Verdict = Literal["steady", "warm-up", "filling", "growing", "leak"]

# Up to this number, each object counts, such as an environment or an agent. Larger numbers may vary.
FEW_OBJECTS = 100
BULK = ("Tensor", "Parameter", "ndarray", "list", "dict")  # types of which a single object never counts
SIZE_LIMIT_BYTES = 5e6  # growth of a named object in a cycle
_MOST_AN_ITEM = 8  # largest number of objects in an item of a buffer
_FEW_CYCLES = 5  # up to this number a leak and a warm-up look the same
_LEAST_BYTES = 8e6  # less is noise of allocators


@dataclass(frozen=True)
class Judgement:
    """The verdict on a level, with its reason in words.

    Attributes:
        verdict: `steady`: it did not rise. `warm-up`: it rose and stopped. `filling`: bounded buffers explain
            the rise. `growing`: it rises, but this is no leak yet. `leak`: it rises and nothing explains it,
            or objects are kept that should not be.
        baseline: the first level.
        current: the last level.
        per_cycle: rise per cycle.
        since: the cycle in which the rise began; 0 if it did not rise.
        reason: the reason of the verdict.

    """

    verdict: Verdict
    baseline: float
    current: float
    per_cycle: float = 0.0
    since: int = 0
    reason: str = ""

    @property
    def change(self) -> float:
        """Difference between the last and the first level."""
        return self.current - self.baseline


def judge_count(series: Points, unit: str, stored: Points = (), *, one_by_one: bool = True) -> Judgement:
    """Judge the number of live objects of a class.

    Of a few objects there may be one more than at the start, such as the best agent beside its population.
    Many objects, or objects of which a single one does not count, may vary by 5% and rise once.

    Args:
        series: number of objects at the end of each cycle, or the lowest number in it.
        unit: name of a cycle.
        stored: number of items in the bounded buffers at the same times.
        one_by_one: whether each object counts, as environments and agents do and tensors do not.

    """
    series = settled(_from_first_known(series))
    stored = _from(series, stored)
    baseline, current = series[0][1], series[-1][1]
    few = one_by_one and baseline <= FEW_OBJECTS
    # A leak that began late deviates from any single line. Without a fall, this deviation is not noise.
    swing = min(3 * noise(series), _largest_fall(series)) if few else 3 * noise(series)
    tolerance = max(1.0 if few else baseline / 20, swing)
    change = kept(series) - baseline
    if change <= tolerance:
        back = f"back at {kept(series):.0f} each {unit}" if current - baseline > tolerance else ""
        return Judgement("steady", baseline, current, reason=back)
    since = _above_for_good(series, baseline + tolerance) if few else onset(series)
    rising = still_rises(series, 0.0 if few else tolerance / 4)
    added = _gain(stored)
    late = _gain(last_half(series)) <= _MOST_AN_ITEM * _gain(last_half(stored)) or not rising
    if kept(series) > FEW_OBJECTS and 0 < added / 2 <= change <= _MOST_AN_ITEM * added and late:
        reason = f"about {change / added:.1f} for each item that the buffers took"
        return Judgement("filling", baseline, current, slope(series), since, reason)
    if rising:
        return _rising(series, unit, since, judged_early=one_by_one)
    if few and rises(series) <= 2:
        reason = f"{_count(current - baseline)} more are kept since {unit} {since}"
        return Judgement("leak", baseline, current, 0.0, since, reason)
    return Judgement("warm-up", baseline, current, 0.0, since, "rose and has levelled off")


def judge_items(series: Points, unit: str, bound: float | None = None) -> Judgement:
    """Judge a number of items that varies: bodies, entities, the items of a list.

    It may vary by 5%, and by three times its square root.

    Args:
        series: number of items at the end of each cycle.
        unit: name of a cycle.
        bound: largest allowed number.

    """
    series = settled(series)
    baseline, current = series[0][1], series[-1][1]
    tolerance = max(4 + 3 * math.sqrt(baseline), baseline / 20, 3 * noise(series))
    if bound is not None and current > PAST_BOUND * bound:
        since = _above_for_good(series, PAST_BOUND * bound)
        return Judgement("leak", baseline, current, slope(series), since, f"past its bound of {bound:.0f}")
    if kept(series) - baseline <= tolerance:
        return Judgement("steady", baseline, current)
    since = onset(series)
    if not still_rises(series, tolerance / 4):
        return Judgement("warm-up", baseline, current, 0.0, since, "rose and has levelled off")
    if bound is not None:
        pace = slope(_since(series, since))
        return Judgement("filling", baseline, current, pace, since, f"within its bound of {bound:.0f}")
    return _rising(series, unit, since, judged_early=False)


def judge_size(series: Points, unit: str, limit_bytes: float = SIZE_LIMIT_BYTES) -> Judgement:
    """Judge the size of a named object: a leak if it keeps growing by more than its limit in a cycle."""
    series = settled(series)
    baseline, current = series[0][1], series[-1][1]
    late = last_half(series)
    pace = slope(late)
    if kept(series) - baseline <= max(baseline / 100, 3 * noise(series)):
        return Judgement("steady", baseline, current, pace)
    since = onset(series)
    if not still_rises(series, 0.0):
        return Judgement("warm-up", baseline, current, pace, since, "grew and has levelled off")
    if pace > limit_bytes:
        reason = f"over its limit of {limit_bytes / 1e6:g} MB/{unit}"
        return Judgement("leak", baseline, current, pace, since, reason)
    return Judgement("growing", baseline, current, pace, since, f"within {limit_bytes / 1e6:g} MB/{unit}")


def judge_memory(resident: Points, bounded: Points, unit: str, limit_bytes: float | None = None) -> Judgement:
    """Judge the resident memory.

    Args:
        resident: bytes at the same point of every cycle.
        bounded: bytes in bounded buffers at these points.
        unit: name of a cycle.
        limit_bytes: growth in a cycle that the trainer allows; without it any lasting growth is a leak.

    """
    resident = settled(resident)
    bounded = _from(resident, bounded)
    baseline, current = resident[0][1], resident[-1][1]
    tolerance = max(_LEAST_BYTES, baseline / 50)
    if kept(resident) - baseline <= max(tolerance, 3 * noise(resident)):
        return Judgement("steady", baseline, current)
    since = onset(resident)
    if not still_rises(resident, tolerance / 2):
        return Judgement("warm-up", baseline, current, 0.0, since, "rose and has levelled off")
    pace, filled = slope(last_half(resident)), slope(last_half(bounded))
    if filled >= 0.7 * pace:
        reason = f"buffers that fill take {filled / 1e6:.1f} of {pace / 1e6:.1f} MB/{unit}"
        return Judgement("filling", baseline, current, pace, since, reason)
    if len(resident) <= _FEW_CYCLES:
        return Judgement("growing", baseline, current, pace, since, f"too few {unit}s to tell from a warm-up")
    unexplained = [(cycle, level - held) for (cycle, level), (_, held) in zip(resident, bounded, strict=True)]
    since, pace = onset(unexplained), slope(last_half(unexplained))
    if limit_bytes is not None and pace <= limit_bytes:
        reason = f"within its limit of {limit_bytes / 1e6:g} MB/{unit}"
        return Judgement("growing", baseline, current, pace, since, reason)
    return Judgement("leak", baseline, current, pace, since, "goes on, and no filling buffer explains it")


def _rising(series: Points, unit: str, since: int, *, judged_early: bool) -> Judgement:
    """A leak; or `growing` while there are too few cycles to exclude a warm-up."""
    baseline, current, pace = series[0][1], series[-1][1], slope(_since(series, since))
    if not judged_early and len(series) <= _FEW_CYCLES:
        return Judgement("growing", baseline, current, pace, since, f"too few {unit}s to tell from a warm-up")
    return Judgement("leak", baseline, current, pace, since, f"increasing by {_count(pace)} each {unit}")


def _gain(series: Points) -> float:
    return series[-1][1] - series[0][1] if series else 0.0


def _from_first_known(series: Points) -> Points:
    """The series without the zeros before the first object."""
    first = next((index for index, (_, level) in enumerate(series) if level), 0)
    return series[first:]


def _from(series: Points, other: Points) -> Points:
    """The points of `other` from the first cycle of `series` on."""
    return [(cycle, level) for cycle, level in other if cycle >= series[0][0]]


def _above_for_good(series: Points, level: float) -> int:
    """The first cycle from which all counts are above `level`. A number of few objects has no noise."""
    cycle = series[-1][0]
    for number, count in reversed(series):
        if count <= level:
            break
        cycle = number
    return int(cycle)


def _largest_fall(series: Points) -> float:
    return max((before - after for (_, before), (_, after) in pairwise(series)), default=0.0)


def _since(series: Points, cycle: int) -> Points:
    """The points from the one before `cycle` on."""
    first = next((index for index, (number, _) in enumerate(series) if number >= cycle), 0)
    return series[max(0, first - 1) :]


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
