"""What is known of a trainer's process beside its levels: its age, its cycles, its cleanups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heapwatch.analysis.timeline import Values, at, steps

MATURE_MINUTES, MATURE_CYCLES, MATURE_SECONDS = 24, 2, 2700
YOUNG_CYCLES, YOUNG_LOOKS = 4, 11
PACE_LIMITS = (0.5, 2.0)  # a change of speed by more is no speed
RESET_LOOKS = steps(4)


@dataclass(frozen=True)
class Process:
    """What is known of a trainer's process, a value for each look; what it does not tell has no values.

    Attributes:
        start: when the process started, in seconds on the clock of `time`.
        time: the looks' own times, in seconds.
        cycles: ended generations, else epochs, else episodes: the slowest of them.
        steps: training steps.
        cleanups: emergency cleanups and those that were asked for.
        bounded: bytes that buffers with a bound hold.
        virtual: virtual memory of the trainer's process, in bytes.
        retained: bytes that malloc keeps though they are free.
        sample_age: seconds since the last sample, by resource.
        named: growth per minute, in bytes, of the leaks that the trainer names itself, while they are most of
            its growth.

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


def resets(process: Process) -> list[bool]:
    """Until four minutes after a restart or a cleanup: what was held before says nothing."""
    resets = []
    for look in range(len(process.time)):
        now, then = process.start[look], at(process.start, look - RESET_LOOKS)
        restarted = now is not None and then is not None and now != then
        resets.append(restarted or _cleaned(process.cleanups, look))
    return resets


def _cleaned(cleanups: Values | None, look: int) -> bool:
    if cleanups is None:
        return False
    recent = [count for count in cleanups[max(0, look - RESET_LOOKS) : look + 1] if count is not None]
    return len(set(recent)) > 1


def maturity_of(process: Process, look: int) -> int:
    """2: through start-up and two cycles; 1: young, but training and through four cycles; 0: too early."""
    start, cycles = process.start[look], _of(process.cycles, look)
    if start is None:
        return 0
    age = process.time[look] - start
    settled = cycles is None or cycles >= MATURE_CYCLES or age > MATURE_SECONDS
    if settled and same_process(process, look, MATURE_MINUTES):
        return 2
    known = at(process.start, look - YOUNG_LOOKS) == start
    return int(known and has_trained(process, look, YOUNG_LOOKS))


def has_trained(process: Process, look: int, looks: int) -> bool:
    """Whether it is through four cycles (steps, if it counts nothing slower), and trained so long ago."""
    cycles = _of(process.cycles, look)
    through = cycles if cycles is not None else _of(process.steps, look)
    before = any((_of(counts, look - looks) or 0) > 0 for counts in (process.steps, process.cycles))
    return before and through is not None and through >= YOUNG_CYCLES


def pace(process: Process, look: int) -> float | None:
    """The speed of the last three minutes against that of the three before; None without steps."""
    now, middle, half, first = (_of(process.steps, look - back) for back in (0, 5, 6, 11))
    if now is None or middle is None or half is None or first is None or half <= first:
        return None
    slowest, fastest = PACE_LIMITS
    return min(max((now - middle) / (half - first), slowest), fastest)


def same_process(process: Process, look: int, minutes: int) -> bool:
    """Whether the process of now ran so many minutes ago."""
    now, then = process.start[look], at(process.start, look - steps(minutes))
    return now is not None and now == then


def _of(values: Values | None, look: int) -> float | None:
    return at(values, look) if values is not None else None
