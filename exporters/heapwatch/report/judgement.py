"""Verdicts on the levels of a recorded run, from cycle to cycle.

A level that rises continues to do so by the judge's definition. The least rise that matters is the judge's,
or a limit that the trainer declares; for live objects at least a tenth.
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
    """The verdict on a level, with its reason in words: from the first level to the last.

    `per_cycle` is its rise, `since` the cycle in which that began; both are 0 if it did not rise. `last` is
    the cycle of the last level.
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
    growth = level.growth(level.rise_began())
    baseline, current = series[0][1], series[-1][1]
    risen = growth.total if growth.span else max(0.0, current - baseline)
    bend, since, rate = series[0][0], 0, 0.0
    past = None if terms.bound is None or current <= PAST_BOUND * terms.bound else terms.bound
    if len(series) > 1 and (risen > terms.least or terms.leaks or past is not None):
        bend, since, rate = rise_of(series, past)
    word: Word = "healthy"
    reason = ""
    if past is not None:
        word, reason = "leak", f"past its bound of {past:.0f}"
        reason += f", {each(rate, terms.unit)}" if rate > 0 else ""
    elif terms.leaks:
        word, reason = "leak", each(rate, terms.unit)
    elif risen > terms.least and _fills(
        series, terms, bend, lasting=growth.rising or len(series) < FEWEST_LEVELS
    ):
        word, reason = "filling", "buffers that fill explain it"
    elif risen > terms.least:
        word, reason = _rising(series, terms, level, rate)
    rises = word not in ("healthy", "warm-up")
    return Judgement(word, baseline, current, rate if rises else 0.0, since, reason, series[-1][0])


def _rising(series: Points, terms: Terms, level: LevelSeries, rate: float) -> tuple[Word, str]:
    """The verdict on a level that has risen enough to matter."""
    began, bound, limit, unit = level.rise_began(), terms.bound, terms.limit, terms.unit
    growth = level.growth(began)
    lasted = (series[-1][0] - max(began, series[0][0])) * terms.cycle_seconds
    if sum(cycle >= began for cycle, _ in series) < FEWEST_LEVELS:
        return "too early", f"too few {unit}s to distinguish it from a warm-up"
    if limit is bound is None and lasted < SHORTEST_SECONDS:
        return "too early", "rises for less than two minutes"
    if not growth.rising:
        slows = growth.lasting < COUNTED.last_part
        return ("warm-up", "rose and slows down") if slows else ("growing", "rises unevenly")
    if bound is not None:
        return "filling", f"within its bound of {bound:.0f}"
    if limit is not None:
        allowed = f"its limit of {size(limit)}/{unit}"
        return ("growing", f"within {allowed}") if rate <= limit else ("leak", f"over {allowed}")
    if terms.leaks is False:
        return "growing", "rises, but not as steadily as a leak"
    return "leak", each(rate, unit)


def each(rate: float, unit: str) -> str:
    """Such as `increasing by 16 each generation`."""
    count = f"{rate:.0f}" if rate >= 10 or rate == int(rate) else f"{rate:.1f}"
    return f"increasing by {count} each {unit}"


def _fills(series: Points, terms: Terms, bend: float, *, lasting: bool) -> bool:
    """Whether the buffers took enough for the rise from its bend on; if it lasts, also in the last half.

    After they are full they take nothing: the level may not rise by more than what matters from then on.
    """
    held = dict(terms.filled)
    if not held:
        return False
    before = max((number for number, (cycle, _) in enumerate(series) if cycle <= bend), default=0)
    unexplained = [level - held.get(cycle, 0.0) / terms.share for cycle, level in series]
    most = _FULL * max(held.values())
    full = next((number for number, (cycle, _) in enumerate(series) if held.get(cycle, 0.0) >= most), -1)
    starts = (0, before, len(series) // 2)[: 2 + lasting]
    return series[-1][1] <= series[full][1] + terms.least and all(
        unexplained[-1] <= unexplained[start] for start in starts
    )
