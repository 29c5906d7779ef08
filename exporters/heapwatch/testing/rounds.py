"""Runs a unit of work for a number of rounds and finds what grows with every round.

Rounds take the place of time: lengths are read after each, once the garbage is collected. The first rounds
are warm-up. The check ends when nothing has grown for a few rounds.
"""

from __future__ import annotations

import fnmatch
import gc
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from heapwatch.explain.census import Census, GrowingType
from heapwatch.explain.describe import Describer
from heapwatch.explain.evidence import Candidate
from heapwatch.explain.findings import size_text
from heapwatch.explain.inventory import Inventory, KnownContainer
from heapwatch.explain.series import LevelSeries
from heapwatch.explain.sites import Site
from heapwatch.explain.tracing import FRAMES, made_at
from heapwatch.explain.weigh import newest_of, weigh
from heapwatch.measure.malloc import malloc_bytes
from heapwatch.measure.roots import OWN_THREADS, Root

T = TypeVar("T")

ROUNDS = 24
LEAST_BYTES = 4000  # a round; a log of plain numbers takes less
FEWEST = 9
_WARM_UP_SHARE = 0.25
_STILL = 6  # rounds without growth, after the warm-up, that end the check
_LEAST_NATIVE_BYTES = 100_000
_STEADY = 0.5
_COUNTS = 8  # of all objects, in all rounds
_LOOK_SECONDS = 10.0
_MOST_WEIGHED = 20


@dataclass(frozen=True)
class Growing:
    """Something that grows with every round.

    Attributes:
        name: its path, or in words what it is.
        about: what it holds, in words.
        bytes: growth in a round; None if it cannot be measured.
        items: growth in a round; None if items are not counted.
        site: the line where it grows.
        holders: what holds it, the nearest first.
        remedy: what to do.

    """

    name: str
    about: str
    bytes: float | None
    items: float | None = None
    site: Site | None = None
    holders: tuple[str, ...] = ()
    remedy: str | None = None

    def __str__(self) -> str:
        facts = [] if self.bytes is None else [f"+{size_text(self.bytes)}"]
        facts += [] if self.items is None else [f"{self.items:+,.3g} items"]
        text = f"{self.name} ({self.about}): {' and '.join(facts) or 'grows'} a round"
        if self.site is not None:
            text += f", filled at {self.site.file}:{self.site.line} in {self.site.function or '<module>'}"
        elif self.holders:
            text += f", held by {' < '.join(self.holders)}"
        return f"{text}. Suggested: {self.remedy}." if self.remedy else f"{text}."


class GrowthCheck:
    """One check of a unit of work.

    Args:
        rounds: most rounds for which the unit runs.
        allow: patterns of paths that may grow, in which `*` stands for anything, and bytes a round.
        roots: where the unit may keep objects, in addition to modules and running functions.

    Raises:
        ValueError: too few rounds to judge by.

    """

    def __init__(
        self,
        *,
        rounds: int = ROUNDS,
        allow: str | float | Sequence[str | float] = (),
        roots: Callable[[], list[Root]] = list,
    ) -> None:
        if rounds < FEWEST:
            raise ValueError(f"growth cannot be judged in {rounds} rounds; it takes {FEWEST} at least")
        allowed = [allow] if isinstance(allow, (str, int, float)) else list(allow)
        self.rounds = rounds
        self.done = 0
        self._patterns = [entry for entry in allowed if isinstance(entry, str)]
        self._least = max([LEAST_BYTES, *(float(entry) for entry in allowed if not isinstance(entry, str))])
        self._inventory = Inventory(self._clock, lambda: 0.0, roots)
        self._census = Census(self._clock, unlimited=True, fewest=3)
        self._describer = Describer(self._inventory)
        self._malloc = LevelSeries()

    def run(self, unit: Callable[[], object]) -> list[Growing]:
        """Run the unit until it can be judged; returns what grows, fastest first."""
        while self.done < self.rounds:
            unit()
            self.done += 1
            _in_a_thread(self._look)
            if self.done >= FEWEST and not self._moved():
                return []
        found = _in_a_thread(self._judge)
        if any(growing.site is None and growing.name in self._inventory.known for growing in found):
            return self._traced(unit, found)
        return found

    def _clock(self) -> float:
        return float(self.done)

    def _look(self) -> None:
        gc.collect()
        self._inventory.discover(_LOOK_SECONDS)
        for known in list(self._inventory.known.values()):
            known.due = 0.0
        self._inventory.read(_LOOK_SECONDS)
        if self.done % max(1, self.rounds // _COUNTS) == 0:
            self._census.count()  # takes longer than the rest
        in_use, _ = malloc_bytes()
        if in_use is not None:
            self._malloc.add(self.done, in_use)

    @property
    def _start(self) -> float:
        return max(2.0, _WARM_UP_SHARE * self.done)

    def _moved(self) -> bool:
        """Whether anything has grown in the last rounds."""
        since = max(2.0, self.done - _STILL)
        levels = [known.items for known in self._inventory.known.values()]
        levels += [known.counts for known in self._census.types.values() if not _is_own(known)]
        return any(_ends_higher(level, since) for level in levels) or self._native(since) is not None

    def _judge(self) -> list[Growing]:
        candidates = [self._candidate(known) for known in self._rising()[:_MOST_WEIGHED]]
        found: list[Growing] = []
        met: set[int] = set()
        for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
            if not candidate.traits.ids & met and not candidate.bounded and self._matters(candidate):
                found.append(_growing(candidate))
            met |= candidate.traits.ids
        native = self._native(self._start)
        if not found:
            found += self._types()
        if (
            native is not None
            and native > 2 * sum(one.bytes or 0.0 for one in found)
            and native > self._least
        ):
            found.append(Growing("memory outside Python objects", "malloc", native))
        return [one for one in found if not self._is_allowed(one.name)]

    def _rising(self) -> list[KnownContainer]:
        known = list(self._inventory.known.values())
        return [one for one in known if one.items.growth(self._start).rising]

    def _candidate(self, known: KnownContainer) -> Candidate:
        weigh(known, self._inventory, float(self.done))
        return self._describer.describe(known, known.items.growth(self._start))

    def _matters(self, candidate: Candidate) -> bool:
        # The memory that a graph keeps alive cannot be measured.
        return candidate.traits.graph or candidate.bytes_per_minute / 60 >= self._least

    def _types(self) -> list[Growing]:
        growing = [
            known
            for known, growth in self._census.growing(self._start)
            if growth.per_second >= 0.9 and not _is_own(known)
        ][:4]
        if not growing:
            return []
        chains = self._census.inspect([known.name for known in growing], set(self._inventory.anchors))
        found = [self._type(known, chains.get(known.name, ())) for known in growing]
        return [one for one in found if (one.bytes or 0.0) >= self._least]

    def _type(self, known: GrowingType, holders: tuple[str, ...]) -> Growing:
        pace = known.counts.growth(self._start).per_second
        size = pace * known.each_bytes if known.each_bytes else None
        return Growing(known.name, "instances", size, pace, holders=holders or ("nothing in Python",))

    def _native(self, since: float) -> float | None:
        """Steady growth of malloc's blocks in use, in bytes a round; None if there is none."""
        levels = [bucket.last for bucket in self._malloc.since(since)]
        rises = [after - before for before, after in pairwise(levels)]
        if not rises:
            return None
        mean = sum(rises) / len(rises)
        return mean if min(rises) >= _STEADY * mean and mean >= _LEAST_NATIVE_BYTES else None

    def _is_allowed(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns)

    def _traced(self, unit: Callable[[], object], found: list[Growing]) -> list[Growing]:
        """The findings, with lines that were not known from one more round under `tracemalloc`."""
        if tracemalloc.is_tracing():
            return found
        tracemalloc.start(FRAMES)
        try:
            unit()
            return [self._with_line(growing) for growing in found]
        finally:
            tracemalloc.stop()

    def _with_line(self, growing: Growing) -> Growing:
        known = self._inventory.known.get(growing.name)
        if growing.site is not None or known is None:
            return growing
        return replace(growing, site=made_at(newest_of(known, self._inventory)))


def _in_a_thread(work: Callable[[], T]) -> T:
    """Run `work` in another thread: the explainer leaves the functions of its own threads out."""
    with ThreadPoolExecutor(1, thread_name_prefix=f"{OWN_THREADS}look") as pool:
        return pool.submit(work).result()


def _growing(candidate: Candidate) -> Growing:
    known = candidate.known
    about = " of ".join(filter(None, (known.type_name, candidate.traits.item_type)))
    size = candidate.bytes_per_minute / 60
    return Growing(
        known.path,
        about,
        size if size > 0 else None,
        None if known.in_bytes else candidate.growth.per_second * known.multiplicity,
        candidate.site,
        candidate.holders,
        candidate.remedy,
    )


def _is_own(known: GrowingType) -> bool:
    return known.name.startswith("heapwatch.")


def _ends_higher(level: LevelSeries, since: float) -> bool:
    """Whether a level was higher in the last rounds than ever before."""
    buckets = level.since(float("-inf"))
    before = [bucket.last for bucket in buckets if bucket.end <= since]
    after = [bucket.last for bucket in buckets if bucket.end > since]
    return bool(before and after) and max(after) > max(before)
