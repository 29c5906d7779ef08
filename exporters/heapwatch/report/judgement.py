"""Judges the levels of a recorded run by their values at the ends of cycles.

Lasting growth is defined as in `heapwatch.judge`. So is the least rise that matters, unless the trainer
declares a limit; for live objects it is at least a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

from heapwatch.judge.growth import COUNTED, FEWEST_LEVELS, SHORTEST_SECONDS
from heapwatch.judge.level import LevelSeries
from heapwatch.judge.trainer import PAST_BOUND
from heapwatch.judge.verdict import Word
from heapwatch.report.since import Points, rise_of
from heapwatch.text.numbers import size

_MOST_AN_ITEM = 8  # largest number of objects in an item of a buffer
_FULL = 0.99  # of what buffers held at most


@dataclass(frozen=True)
class Judgement:
    """The verdict on a level, with its reason as text; `baseline` and `current` are its ends.

    `per_cycle` is its rise per cycle and `since` the cycle in which the rise began; both are 0 without a
    rise. `last` is the cycle of the last value.
    """

    verdict: Word
    baseline: float
    current: float
    per_cycle: float = 0.0
    since: int = 0
    reason: str = ""
    last: float = 0.0

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
        leaks: whether the trainer's judge reports a leak; None without a verdict.
        filled: content of bounded buffers in the same cycles; it explains a rise that follows it.
        share: least part of the rise that the buffers must explain.

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
    growth = level.growth(level.rise_began())
    baseline, current = series[0][1], series[-1][1]
    rise = growth.total if growth.span else max(0.0, current - baseline)
    bend, start, rate = series[0][0], 0, 0.0
    exceeded = None if terms.bound is None or current <= PAST_BOUND * terms.bound else terms.bound
    if len(series) > 1 and (rise > terms.least or terms.leaks or exceeded is not None):
        bend, start, rate = rise_of(series, exceeded)
    word: Word = "healthy"
    reason = ""
    if exceeded is not None:
        word, reason = "leak", f"past its bound of {exceeded:.0f}"
        reason += f", {rate_text(rate, terms.unit)}" if rate > 0 else ""
    elif terms.leaks:
        word, reason = "leak", rate_text(rate, terms.unit)
    elif rise > terms.least and _fills(
        series, terms, bend, lasting=growth.rising or len(series) < FEWEST_LEVELS
    ):
        word, reason = "filling", "buffers that fill explain it"
    elif rise > terms.least:
        word, reason = _rising(series, terms, level, rate)
    rises = word not in ("healthy", "warm-up")
    return Judgement(word, baseline, current, rate if rises else 0.0, start, reason, series[-1][0])


def _rising(series: Points, terms: Terms, level: LevelSeries, rate: float) -> tuple[Word, str]:
    """The verdict on a level that has risen enough to matter."""
    rise_began, bound, limit, unit = level.rise_began(), terms.bound, terms.limit, terms.unit
    growth = level.growth(rise_began)
    rise_seconds = (series[-1][0] - max(rise_began, series[0][0])) * terms.cycle_seconds
    if sum(cycle >= rise_began for cycle, _ in series) < FEWEST_LEVELS:
        return "too early", f"too few {unit}s to distinguish it from a warm-up"
    if limit is bound is None and rise_seconds < SHORTEST_SECONDS:
        return "too early", "rises for less than two minutes"
    if not growth.rising:
        slows = growth.lasting < COUNTED.last_part
        return ("warm-up", "rose and slows down") if slows else ("growing", "rises unevenly")
    if bound is not None:
        return "filling", f"within its bound of {bound:.0f}"
    if limit is not None:
        limit_text = f"its limit of {size(limit)}/{unit}"
        return ("growing", f"within {limit_text}") if rate <= limit else ("leak", f"over {limit_text}")
    if terms.leaks is False:
        return "growing", "rises, but not as steadily as a leak"
    return "leak", rate_text(rate, unit)


def rate_text(rate: float, unit: str) -> str:
    """The rate as text, such as `increasing by 16 each generation`."""
    count = f"{rate:.0f}" if rate >= 10 or rate == int(rate) else f"{rate:.1f}"
    return f"increasing by {count} each {unit}"


def _fills(series: Points, terms: Terms, bend: float, *, lasting: bool) -> bool:
    """Whether growing buffers explain the rise from its bend on; a lasting rise also in its last half.

    Full buffers no longer grow: from then on the level may rise by `terms.least` at most.
    """
    buffer_levels = dict(terms.filled)
    if not buffer_levels:
        return False
    bend_index = max((number for number, (cycle, _) in enumerate(series) if cycle <= bend), default=0)
    rests = [level - buffer_levels.get(cycle, 0.0) / terms.share for cycle, level in series]
    maximum = _FULL * max(buffer_levels.values())
    full_index = next(
        (number for number, (cycle, _) in enumerate(series) if buffer_levels.get(cycle, 0.0) >= maximum), -1
    )
    starts = (0, bend_index, len(series) // 2)[: 2 + lasting]
    return series[-1][1] <= series[full_index][1] + terms.least and all(
        rests[-1] <= rests[start] for start in starts
    )
