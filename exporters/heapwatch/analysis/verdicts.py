"""Whether growth is a leak: of live objects, of a named object's size, and of memory. Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from heapwatch.analysis.bounds import PAST_BOUND
from heapwatch.analysis.trend import Series, kept, last_half, noise, onset, rises, settled, slope, still_rises

Verdict = Literal["steady", "warm-up", "filling", "growing", "leak"]

# Up to so many, a trainer's objects are meant one by one: environments, agents. More are counted in bulk.
FEW_OBJECTS = 100
BULK = ("Tensor", "Parameter", "ndarray", "list", "dict")  # these come by the dozen
SIZE_LIMIT_BYTES = 5e6  # growth of a named object a cycle
_MOST_AN_ITEM = 8  # objects that an item of a buffer holds
_FEW_CYCLES = 5  # no more do not tell a leak from a warm-up
_LEAST_BYTES = 8e6  # less is what allocators do


@dataclass(frozen=True)
class Judgement:
    """What became of a level: a verdict, and why in words.

    `steady` is as it was, `warm-up` rose and has stopped, `filling` is taken by buffers that have a bound,
    `growing` rises without being a leak yet, `leak` rises and nothing explains it, or is kept and should not
    be. `baseline` and `current` are the first and the last level, `per_cycle` the pace of the rise, `since`
    the cycle in which it began (0: it did not rise).
    """

    verdict: Verdict
    baseline: float
    current: float
    per_cycle: float = 0.0
    since: int = 0
    reason: str = ""

    @property
    def change(self) -> float:
        """The last level less the first."""
        return self.current - self.baseline


def judge_count(series: Series, unit: str, stored: Series = (), *, one_by_one: bool = True) -> Judgement:
    """Judge the number of live objects of a class.

    A trainer's own few objects may be one more than at the start (the best agent so far beside its
    population). Many objects, or such as are not meant one by one, may vary by a twentieth and rise once.

    Args:
        series: objects at the end of each cycle, or the fewest in it.
        unit: what a cycle is called.
        stored: items in the buffers that have a bound, in the same order.
        one_by_one: whether each of a few is meant: environments and agents are, tensors are not.

    """
    series = settled(_from_first_known(series))
    stored = _from(series, stored)
    baseline, current = series[0][1], series[-1][1]
    few = one_by_one and baseline <= FEW_OBJECTS
    # A leak that began late lies far from any one line: without a fall that is no noise of a few objects.
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


def judge_items(series: Series, unit: str, bound: float | None = None) -> Judgement:
    """Judge what is counted in bulk and comes and goes: bodies, entities, the items of a list.

    It may vary by a twentieth, and by three times its square root as counts do.

    Args:
        series: how many at the end of each cycle.
        unit: what a cycle is called.
        bound: how many there may be.

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


def judge_size(series: Series, unit: str, limit_bytes: float = SIZE_LIMIT_BYTES) -> Judgement:
    """Judge the size of a named object: a leak where it grows by more than its limit a cycle, and goes on."""
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


def judge_memory(resident: Series, bounded: Series, unit: str, limit_bytes: float | None = None) -> Judgement:
    """Judge the resident memory.

    Args:
        resident: bytes at the same point of every cycle.
        bounded: bytes that buffers with a bound hold at these points.
        unit: what a cycle is called.
        limit_bytes: growth a cycle that the trainer allows; any that goes on is a leak without it.

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


def _rising(series: Series, unit: str, since: int, *, judged_early: bool) -> Judgement:
    """A leak, unless there are too few cycles to tell and a start makes such a rise as well."""
    baseline, current, pace = series[0][1], series[-1][1], slope(_since(series, since))
    if not judged_early and len(series) <= _FEW_CYCLES:
        return Judgement("growing", baseline, current, pace, since, f"too few {unit}s to tell from a warm-up")
    return Judgement("leak", baseline, current, pace, since, f"increasing by {_count(pace)} each {unit}")


def _gain(series: Series) -> float:
    return series[-1][1] - series[0][1] if series else 0.0


def _from_first_known(series: Series) -> Series:
    """Without the zeros before the first object was made."""
    first = next((index for index, (_, level) in enumerate(series) if level), 0)
    return series[first:]


def _from(series: Series, other: Series) -> Series:
    """The points of the other from the first cycle of the series on."""
    return [(cycle, level) for cycle, level in other if cycle >= series[0][0]]


def _above_for_good(series: Series, level: float) -> int:
    """The first cycle from which on a count is above `level`; few objects are counted without noise."""
    cycle = series[-1][0]
    for number, count in reversed(series):
        if count <= level:
            break
        cycle = number
    return int(cycle)


def _largest_fall(series: Series) -> float:
    return max((before - after for (_, before), (_, after) in pairwise(series)), default=0.0)


def _since(series: Series, cycle: int) -> Series:
    """The point before `cycle`, and what follows."""
    first = next((index for index, (number, _) in enumerate(series) if number >= cycle), 0)
    return series[max(0, first - 1) :]


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
