"""What a leak is, in Python: the definition that `prometheus/rules` states in PromQL.

`docs/leak-detection.md` explains it. A test compares both on the same recordings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from heapwatch.judge.observed import (
    BUFFER_TOLERANCE,
    MATURE_MINUTES,
    Process,
    counts,
    explained,
    has_trained,
    maturity_of,
    rate_ratio,
    resets,
    same_process,
)
from heapwatch.collectors.readings import MEMORY, Component
from heapwatch.judge.rates import (
    Sums,
    Values,
    at,
    covariance,
    highest,
    lowest,
    slope,
    steps,
    variance,
)

BYTES = ("memory", "gpu_memory", "object_size")

WINDOWS = (16, 32, 64)  # minutes
HELD_EVALUATIONS = 4  # number of evaluations whose lowest value is the level that is kept
MARK_EVALUATIONS = steps(10)  # longest time without samples after which a mark is still valid
MATERIAL_SHARE, MATERIAL_BYTES = 0.025, 5e6
MATERIAL_ITEMS, MATERIAL_ROOTS = 4.0, 3.0
LARGEST_STEP = 3.2  # the gain of a window exceeds this multiple of the gain of any 2.5 minutes in it
HALF = 2.08  # the gain of a window is below this multiple of the gain of its second half
QUARTER = 2.25  # the gain of the second half is below this multiple of the gain of the last quarter
EARLIER = 1.9  # the gain of a window is at least this multiple of the gain of half a window before it
FAST_EVALUATIONS, FAST_LEAST = 12, 11  # evaluations in six minutes, and the least number with a sample
FAST_SHARE = 0.01  # least growth per minute, as a share of the level
# Least R squared, and limits of the second half's slope over the first's.
STRAIGHT, STEEP = 0.985, (0.85, 1.5)
YOUNG_STRAIGHT, YOUNG_STEEP = 0.995, (0.93, 1.2)
FAST_CHANGES, FAST_HALVES = 9, (0.8, 1.35)
STALE_SECONDS = 45.0  # oldest sample for a verdict over six minutes; for a longer window an eighth of it
NAMED_SHARE = (
    0.5  # least growth of memory, as a share of the growth that the explainer names, and the reverse
)
NAMED_OFTEN = 4  # evaluations in a row with a name, after which its share of the growth may be smaller
NAMED_MINUTES, NAMED_AGE = WINDOWS[0], 15  # time to a material rise; age of a process that counts no steps
NAMED_EVALUATIONS = 5  # number of evaluations for which the process has been training
NAMED_CYCLES = 2  # cycles that it has been through: what lives for one cycle has ended
CYCLE_SECONDS, CYCLE_LARGEST, CYCLE_LAST = 3600.0, 0.5, 0.27
CONFIRMATIONS, HOLD_EVALUATIONS = 3, steps(15)


class Marks:
    """The high-water mark of a level, and its gains at each evaluation."""

    def __init__(self, unexplained: Values, reset: Sequence[bool]) -> None:
        self.high_water: Values = []
        gains: list[float] = []
        mark, seen = None, -MARK_EVALUATIONS - 1
        for index, held in enumerate(lowest(unexplained, HELD_EVALUATIONS)):
            if reset[index] or index - seen > MARK_EVALUATIONS:
                mark = None
            gain = 0.0
            if held is not None:
                risen = held if mark is None else max(mark, held)
                if mark is not None and index - seen <= 2 and not reset[index]:
                    gain = risen - mark
                mark, seen = risen, index
            self.high_water.append(mark if held is not None else None)
            gains.append(gain)
        self.gains = Sums(gains)
        bursts: Values = [self.gains.over(5, index) for index in range(len(gains))]
        self.bursts = {minutes: highest(bursts, steps(minutes) - 4) for minutes in WINDOWS}


@dataclass(frozen=True)
class Growth:
    """Growth per minute at each evaluation; None where there is none, or where it is unknown.

    Attributes:
        found: all lasting growth.
        explained: growth that is no leak, see `explained.explained`; empty for any level but memory.
        verdicts: growth that is a leak.

    """

    found: Values
    explained: list[float]
    verdicts: Values


def growth_of(
    process: Process, levels: Mapping[Component, Values], since: int = 0
) -> dict[Component, Growth]:
    """Judge every level at every evaluation.

    Args:
        process: series of the trainer's process.
        levels: the levels, without bounded lists and buffers; memory without the bytes of bounded buffers.
        since: index of the first evaluation that is judged.

    """
    reset = resets(process)
    maturity = [maturity_of(process, index) for index in range(len(process.time))]
    verdicts = {}
    for component, level in levels.items():
        marks = Marks(level, reset)
        found = _found(process, component, level, marks, maturity, reset, since)
        least = explained(process, marks.gains) if component == MEMORY else []
        named: Values = [None] * len(level)
        if component == MEMORY:
            named = _named(process, level, reset, since)
        # Growth with a name is made of objects in use. The explained part of the growth does not apply to it.
        confirmed = [
            [growth for growth in ways if not least or growth >= least[index]]
            for index, ways in enumerate(found)
        ]
        back = _taken_back(process, found) if component == MEMORY else [False] * len(level)
        verdicts[component] = Growth(
            _highest(found, named), least, _held(_highest(confirmed, named), process.start, back)
        )
    return verdicts


def _found(
    process: Process,
    component: Component,
    level: Values,
    marks: Marks,
    maturity: Sequence[int],
    reset: Sequence[bool],
    since: int,
) -> list[list[float]]:
    """Growth per minute at each evaluation, by each of the tests that find any."""
    age = (process.sample_age or {}).get(component.resource)
    oldest = {many: highest(age, many) for many in (FAST_EVALUATIONS, *map(steps, WINDOWS))} if age else {}
    cycles = _by_cycles(process, component, marks, reset)
    since = max(0, since)
    ways: list[list[float]] = [[] for _ in level[:since]]
    for index in range(since, len(level)):
        stale = {many: ages[index] or 0.0 for many, ages in oldest.items()}
        found = [
            _in_window(process, component, marks, minutes, index)
            for minutes in WINDOWS
            if (minutes > WINDOWS[0] or maturity[index] == 2)
            and stale.get(steps(minutes), 0.0) <= minutes * 60 / 8
        ]
        if stale.get(FAST_EVALUATIONS, 0.0) <= STALE_SECONDS:
            found.append(_fast(process, component, level, marks, maturity[index], index))
        found.append(cycles[index])
        ways.append([growth for growth in found if growth is not None])
    return ways


def _highest(found: list[list[float]], named: Values) -> Values:
    """The highest growth at each evaluation of all tests."""
    return [
        max(ways if own is None else [*ways, own], default=None)
        for ways, own in zip(found, named, strict=True)
    ]


def _taken_back(process: Process, found: list[list[float]]) -> list[bool]:
    """Whether no leak had a name at two evaluations, and no other test found one for a quarter of an hour."""
    named = process.named or [None] * len(found)
    last = -math.inf
    back = []
    for index, growth in enumerate(found):
        last = index if growth else last
        back.append(index - last > HOLD_EVALUATIONS and named[index] == 0 == at(named, index - 1))
    return back


def _held(confirmed: Values, start: Values, back: Sequence[bool]) -> Values:
    """Verdicts: growth at three evaluations in a row, held for a quarter of an hour after the last one.

    A verdict ends with the process: `start` is when it was started, in seconds. It ends where it is taken
    `back`.
    """
    verdicts: Values = []
    run, last, value = 0, 0, None
    began = None
    for index, (growth, started) in enumerate(zip(confirmed, start, strict=True)):
        if started is not None:
            if began is not None and started > began:
                run, value = 0, None
            began = started
        run = run + 1 if growth is not None else 0
        if growth is not None:
            last = index
        if run >= CONFIRMATIONS:
            value = growth
        elif index - last > HOLD_EVALUATIONS or back[index]:
            value = None
        verdicts.append(value)
    return verdicts


def material(component: Component, level: float) -> float:
    """The least rise that counts: for bytes above their usual noise, for items above the error of a count."""
    if component.resource in BYTES:
        return max(MATERIAL_SHARE * level, MATERIAL_BYTES)
    return MATERIAL_ITEMS + MATERIAL_ROOTS * math.sqrt(max(level, 0.0))


def _in_window(
    process: Process, component: Component, marks: Marks, minutes: int, index: int
) -> float | None:
    many, gains = steps(minutes), marks.gains
    gained = gains.over(many, index)
    if gained <= 0 or not same_process(process, index, minutes * 3 // 2):
        return None
    earlier = at(marks.high_water, index - steps(MATURE_MINUTES))
    half, burst = gains.over(many // 2, index), marks.bursts[minutes][index]
    leaks = (
        earlier is not None
        and gained > material(component, earlier)
        and gained > LARGEST_STEP * (burst or 0.0)
        and gained < HALF * half
        and half < QUARTER * gains.over(many // 4, index)
        and gained >= EARLIER * gains.over(many // 2, index - many)
    )
    return gained / minutes if leaks else None


def _fast(
    process: Process, component: Component, level: Values, marks: Marks, maturity: int, index: int
) -> float | None:
    gained, now = marks.gains.over(FAST_EVALUATIONS, index), level[index]
    if gained <= 0 or now is None or not maturity or not same_process(process, index, 6):
        return None
    seen = level[max(0, index - FAST_EVALUATIONS + 1) : index + 1]
    if component.resource in BYTES:
        if gained <= material(component, now):
            return None
        steepness = _straight(seen, _taken(process, index), now, maturity)
        limits = STEEP if maturity == 2 else YOUNG_STEEP
    else:
        mark = at(marks.high_water, index - FAST_EVALUATIONS)
        if mark is None or gained <= material(component, mark):
            return None
        steepness, limits = _at_every_evaluation(seen), FAST_HALVES
    if steepness is None:
        return None
    # Even growth in time or per step: a trainer that slows down also leaks more slowly.
    ratios = (steepness, steepness / (rate_ratio(process, index) or 1.0))
    return gained / 6 if any(limits[0] < ratio < limits[1] for ratio in ratios) else None


def _taken(process: Process, index: int) -> Values:
    """The counter of steps at the evaluations of the last six minutes."""
    return list(process.steps[max(0, index - FAST_EVALUATIONS + 1) : index + 1]) if process.steps else []


def _straight(seen: Values, taken: Values, now: float, maturity: int) -> float | None:
    """Slope of the last three minutes over that of the three before; None unless all lie on a steep line.

    The line is one in time or one over the steps `taken`: a trainer that collects and updates in turns leaks
    in turns.
    """
    rise, spread = slope(seen), variance(seen)
    late, early = slope(seen[FAST_EVALUATIONS // 2 :]), slope(seen[: FAST_EVALUATIONS // 2])
    many = sum(value is not None for value in seen)
    if not rise or not late or not early or early < 0 or spread == 0 or many < FAST_LEAST:
        return None
    straightness = max(rise * rise * (many**2 - 1) / 12 / spread, _by_steps(seen, taken))
    straight = straightness > (STRAIGHT if maturity == 2 else YOUNG_STRAIGHT)
    return late / early if straight and rise * steps(1) > FAST_SHARE * now else None


def _by_steps(seen: Values, taken: Values) -> float:
    """R squared of a level over the steps taken; 0 unless both are known at each evaluation."""
    pairs = zip(seen, taken, strict=False)
    known = [(level, count) for level, count in pairs if level is not None and count is not None]
    if len(known) < FAST_EVALUATIONS:
        return 0.0
    levels, counted = zip(*known, strict=True)
    spread = variance(levels) * variance(counted)
    return covariance(levels, counted) ** 2 / spread if spread else 0.0


def _at_every_evaluation(seen: Values) -> float | None:
    """Rise of the second half over that of the first; None unless a count changed almost every time."""
    known = [value for value in seen if value is not None]
    rises = [later - earlier for earlier, later in pairwise(known)]
    if len(seen) < FAST_EVALUATIONS or sum(rise != 0 for rise in rises) < FAST_CHANGES or min(rises) < 0:
        return None
    last, middle, half, first = seen[-1], seen[-6], seen[-7], seen[0]
    if last is None or middle is None or half is None or first is None or half <= first:
        return None
    return (last - middle) / (half - first)


def _named(process: Process, level: Values, reset: Sequence[bool], since: int) -> Values:
    """Growth of memory while the explainer names leaks that make up most of it, or names them often."""
    return [
        None if index < since or reset[index] else _named_at(process, level, index)
        for index in range(len(level))
    ]


def _named_at(process: Process, level: Values, index: int) -> float | None:
    now = level[index]
    named = process.named[index] if process.named else None
    if process.named is None or not named or now is None:
        return None
    share = at(process.named_share, index) if process.named_share else None
    often = all(at(process.named, index - back) for back in range(NAMED_OFTEN))
    grown = (slope(level[max(0, index - FAST_EVALUATIONS + 1) : index + 1]) or 0.0) * steps(1)
    trained = has_trained(process, index, NAMED_EVALUATIONS, NAMED_CYCLES)
    trained = trained or same_process(process, index, NAMED_AGE) or (often and not counts(process, index))
    certain = often or (share is not None and share > NAMED_SHARE)
    leaks = (
        NAMED_MINUTES * named > material(MEMORY, now) and grown > NAMED_SHARE * named and trained and certain
    )
    return grown if leaks else None


def _by_cycles(process: Process, component: Component, marks: Marks, reset: Sequence[bool]) -> Values:
    """Growth per minute over the last three cycles of together an hour or more, with about equal gains."""
    counted = process.cycles if component.resource in ("memory", "objects") else None
    found: Values = []
    tolerated = process.bounded if component == MEMORY else None
    ends: list[_CycleEnd] = []
    for index in range(len(process.time)):
        now, was = (counted[index], at(counted, index - 1)) if counted else (None, None)
        if reset[index] or (now is not None and was is not None and now < was):
            ends = []
        mark = marks.high_water[index]
        if now is not None and was is not None and now > was and mark is not None:
            held = tolerated[index] if tolerated else None
            ends = [*ends[-3:], _CycleEnd(process.time[index], mark, BUFFER_TOLERANCE * (held or 0.0))]
        found.append(_cycle_growth(component, ends))
    return found


class _CycleEnd(NamedTuple):
    """End of a cycle in seconds, the mark at that time, and the part that filling buffers may explain."""

    time: float
    mark: float
    tolerated: float


def _cycle_growth(component: Component, ends: Sequence[_CycleEnd]) -> float | None:
    if len(ends) < 4 or ends[3].time - ends[0].time < CYCLE_SECONDS:
        return None
    gains = [later.mark - earlier.mark for earlier, later in pairwise(ends)]
    total = sum(gains)
    leaks = (
        total > 2 * material(component, ends[0].mark)
        and total >= ends[3].tolerated - ends[0].tolerated
        and max(gains) < CYCLE_LARGEST * total
        and gains[-1] > CYCLE_LAST * total
    )
    return 60 * total / (ends[3].time - ends[0].time) if leaks else None
