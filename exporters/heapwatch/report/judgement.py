"""Verdicts on the levels of a recorded run: by the trainer's judge in time, and as counted levels by cycle.

A level that rises continues to do so by the judge's definition. The least rise that matters is the judge's,
or a limit that the trainer declares; for live objects at least a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from heapwatch.judge.growth import COUNTED, FEWEST_LEVELS, SHORTEST_SECONDS
from heapwatch.judge.level import FloorGrowth, LevelSeries
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.trainer import PAST_BOUND, TrainerJudge
from heapwatch.judge.verdict import Word
from heapwatch.recording.points import Run, readings_of
from heapwatch.report.since import Points, rise_of

_MOST_AN_ITEM = 8  # largest number of objects in an item of a buffer
_MOST_SECONDS = 2 * STEP_SECONDS  # between points that are judged in time: one reading may be missed


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
        leaks: what the trainer's judge says of it; None if it could not judge.
        filled: what bounded buffers held at the same times; it explains a rise that follows it.
        share: least part of the rise that these explain.

    """

    least: float
    unit: str
    cycle_seconds: float
    bound: float | None = None
    limit: float | None = None
    leaks: bool | None = None
    filled: Points = ()
    share: float = 1 / _MOST_AN_ITEM


def judged(series: Points, terms: Terms) -> Judgement:
    """Judge a level by its values at the ends of cycles."""
    level = LevelSeries()
    for cycle, value in series:
        level.add(cycle, value)
    began = level.rise_began()
    growth = level.growth(began)
    baseline, current = series[0][1], series[-1][1]
    risen = growth.total if growth.span else max(0.0, current - baseline)
    bend, since, rate = series[0][0], 0, 0.0
    if len(series) > 1 and (risen > terms.least or terms.leaks):
        bend, since, rate = rise_of(series)
    word, reason = _verdict(series, terms, growth, began, bend, rate, risen)
    rises = word not in ("healthy", "warm-up")
    return Judgement(word, baseline, current, rate if rises else 0.0, since, reason)


def _verdict(
    series: Points, terms: Terms, growth: FloorGrowth, began: float, bend: float, rate: float, risen: float
) -> tuple[Word, str]:
    bound, limit, unit = terms.bound, terms.limit, terms.unit
    if bound is not None and series[-1][1] > PAST_BOUND * bound:
        rises = f", {each(rate, unit)}" if rate > 0 else ""
        return "leak", f"past its bound of {bound:.0f}{rises}"
    if terms.leaks:
        return "leak", each(rate, unit)
    if risen <= terms.least:
        return "healthy", ""
    if _fills(series, terms, bend, lasting=growth.rising):
        return "filling", "buffers that fill explain it"
    if sum(cycle >= began for cycle, _ in series) < FEWEST_LEVELS:
        return "too early", f"too few {unit}s to distinguish it from a warm-up"
    lasted = (series[-1][0] - max(began, series[0][0])) * terms.cycle_seconds
    if limit is bound is None and lasted < SHORTEST_SECONDS:
        return "too early", "rises for less than two minutes"
    if not growth.rising and growth.lasting < COUNTED.last_part:
        return "warm-up", "rose and slows down"
    if not growth.rising:
        return "growing", "rises unevenly"
    if bound is not None:
        return "filling", f"within its bound of {bound:.0f}"
    if limit is not None:
        allowed = f"its limit of {limit / 1e6:g} MB/{unit}"
        return ("growing", f"within {allowed}") if rate <= limit else ("leak", f"over {allowed}")
    if terms.leaks is False:
        return "growing", "rises, but not as steadily as a leak"
    return "leak", each(rate, unit)


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


def judged_in_time(run: Run) -> TrainerJudge | None:
    """The trainer's judge after this run; None if the points of its second half are too far apart for it."""
    times = [point.time for point in run.points]
    middle = (times[0] + times[-1]) / 2
    pauses = [later - before for before, later in pairwise(times) if later >= middle]
    if not pauses or median(pauses) > _MOST_SECONDS:
        return None
    judge = TrainerJudge()
    for point in run.points:
        if judge.is_due(point.time):
            judge.observe(point.time, readings_of(point, times[0]).sample(point.time))
    return judge
