"""Series of a trainer's process that its verdicts depend on, and the growth that they explain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heapwatch.analysis.timeline import Sums, Values, at, before, bridged, highest, lowest, steps

MATURE_MINUTES, MATURE_CYCLES, MATURE_SECONDS = 24, 2, 2700
YOUNG_CYCLES, YOUNG_EVALUATIONS = 4, 11
RATE_RATIO_LIMITS = (0.5, 2.0)  # a larger change of speed is cut to these
RESET_EVALUATIONS = steps(4)
BUFFER_TOLERANCE, TOLERANCE = 0.25, 1.25
TOLERANCE_MINUTES = (16, 6)
GAP_MINUTES = 10  # longest gap without samples that is bridged


@dataclass(frozen=True)
class Process:
    """Series of a trainer's process, a value for each evaluation; None for a series that it does not expose.

    Attributes:
        start: start time of the process, in seconds on the clock of `time`.
        time: times of the evaluations in seconds.
        cycles: number of ended generations, else of epochs, else of episodes.
        steps: number of training steps.
        cleanups: number of emergency cleanups and of requested cleanups.
        bounded: bytes in buffers that have a bound.
        virtual: virtual memory of the trainer's process, in bytes.
        retained: freed memory that malloc keeps, in bytes.
        sample_age: seconds since the last sample, by resource.
        named: growth in bytes per minute of the leaks that the trainer's explainer names; 0 if it names none.
        named_share: share of these in the growth of the process.

    """

    start: Values
    time: Sequence[float]
    cycles: Values | None = None
    steps: Values | None = None
    cleanups: Values | None = None
    bounded: Values | None = None
    virtual: Values | None = None
    retained: Values | None = None
    sample_age: Mapping[str, Values] | None = None
    named: Values | None = None
    named_share: Values | None = None


def resets(process: Process) -> list[bool]:
    """Whether a restart or a cleanup was less than four minutes ago: the level before it does not count."""
    resets = []
    for index in range(len(process.time)):
        now, then = process.start[index], at(process.start, index - RESET_EVALUATIONS)
        restarted = now is not None and then is not None and now != then
        resets.append(restarted or _cleaned(process.cleanups, index))
    return resets


def _cleaned(cleanups: Values | None, index: int) -> bool:
    if cleanups is None:
        return False
    recent = [count for count in cleanups[max(0, index - RESET_EVALUATIONS) : index + 1] if count is not None]
    return len(set(recent)) > 1


def maturity_of(process: Process, index: int) -> int:
    """2: past start-up and two cycles; 1: younger, but training and past four cycles; 0: too early."""
    start, cycles = process.start[index], _of(process.cycles, index)
    if start is None:
        return 0
    age = process.time[index] - start
    started = cycles is None or cycles >= MATURE_CYCLES or age > MATURE_SECONDS
    if started and same_process(process, index, MATURE_MINUTES):
        return 2
    known = at(process.start, index - YOUNG_EVALUATIONS) == start
    return int(known and has_trained(process, index, YOUNG_EVALUATIONS))


def has_trained(process: Process, index: int, evaluations: int, least: int = YOUNG_CYCLES) -> bool:
    """Whether `least` cycles (four steps, where none are counted) have ended, and it trained so many ago."""
    cycles, steps_taken = _of(process.cycles, index), _of(process.steps, index)
    before = any((_of(counts, index - evaluations) or 0) > 0 for counts in (process.steps, process.cycles))
    if cycles is not None:
        return before and cycles >= least
    return before and steps_taken is not None and steps_taken >= YOUNG_CYCLES


def counts(process: Process, index: int) -> bool:
    """Whether it counts cycles or steps."""
    return _of(process.cycles, index) is not None or _of(process.steps, index) is not None


def rate_ratio(process: Process, index: int) -> float | None:
    """Steps in the last three minutes over steps in the three minutes before; None without steps."""
    now, middle, half, first = (_of(process.steps, index - back) for back in (0, 5, 6, 11))
    if now is None or middle is None or half is None or first is None or half <= first:
        return None
    slowest, fastest = RATE_RATIO_LIMITS
    return min(max((now - middle) / (half - first), slowest), fastest)


def same_process(process: Process, index: int, minutes: int) -> bool:
    """Whether the present process was running `minutes` ago."""
    now, then = process.start[index], at(process.start, index - steps(minutes))
    return now is not None and now == then


def _of(values: Values | None, index: int) -> float | None:
    return at(values, index) if values is not None else None


def explained(process: Process, gains: Sums) -> list[float]:
    """Growth of memory per minute that is no leak; minus infinity where none is known.

    It is that of bounded buffers, of freed memory that malloc keeps, and of pages touched late.

    Args:
        process: series of the trainer's process.
        gains: rise of the high-water mark of its memory at each evaluation.

    """
    parts: list[list[float]] = []
    if process.bounded is not None:
        parts.append([BUFFER_TOLERANCE * (risen or 0.0) for risen in _risen(process.bounded, 16)])
    if process.retained is not None:
        parts.append([TOLERANCE * kept for kept in retention(process)])
    if process.virtual is not None:
        parts.append([TOLERANCE * pages for pages in _touched(process, process.virtual, gains)])
    return [sum(together) for together in zip(*parts, strict=True)] or [-math.inf] * len(process.time)


def retention(process: Process) -> list[float]:
    """Growth per minute of the freed memory that malloc keeps."""
    if process.retained is None:
        return [0.0] * len(process.time)
    slow, fast = _risen(lowest(process.retained, steps(3)), 16), _risen(process.retained, 6)
    return [max(one or 0.0, other or 0.0, 0.0) for one, other in zip(slow, fast, strict=True)]


def retention_continues(process: Process, share: float) -> list[bool]:
    """Whether retention grew in the last eight minutes by at least `share` of its growth in those before."""
    now = lowest(process.retained or [None] * len(process.time), steps(3))
    half, first = before(now, steps(8)), before(now, steps(16))
    return [
        latest is not None
        and middle is not None
        and earliest is not None
        and latest - middle >= share * (middle - earliest)
        and same_process(process, index, 16)
        for index, (latest, middle, earliest) in enumerate(zip(now, half, first, strict=True))
    ]


def _risen(values: Values, minutes: int) -> Values:
    """The rise per minute of each value over `minutes`; a gap in the older values is bridged."""
    return [
        None if now is None or then is None else (now - then) / minutes
        for now, then in zip(values, before(bridged(values, steps(GAP_MINUTES)), steps(minutes)), strict=True)
    ]


def _touched(process: Process, virtual: Values, gains: Sums) -> list[float]:
    """Growth per minute without growth of virtual memory: the pages belong to an earlier allocation."""
    touched = [0.0] * len(virtual)
    for minutes in TOLERANCE_MINUTES:
        tops = highest(virtual, steps(minutes) + 1)
        for index, now in enumerate(tops):
            gained = gains.over(steps(minutes), index)
            if gained <= 0 or not same_process(process, index, minutes):
                continue
            then = _top_before(process, virtual, tops, minutes, index)
            if now is not None and then is not None:
                touched[index] = max(touched[index], (gained - max(now - then, 0.0)) / minutes)
    return touched


def _top_before(process: Process, virtual: Values, tops: Values, minutes: int, index: int) -> float | None:
    """The highest virtual memory of the window before; its last value if the process started within it."""
    then, earlier = index - steps(minutes), at(process.start, index - 2 * steps(minutes))
    another = earlier is not None and earlier != process.start[index]
    return at(virtual if another else tops, then)
