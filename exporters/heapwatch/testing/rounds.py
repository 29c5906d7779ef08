"""Runs a unit of work for a number of rounds and finds what grows with every round.

Rounds replace time: after each round, garbage is collected and lengths are read. The first rounds are
warm-up. The check ends when nothing has grown for a few rounds.
"""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from heapwatch.explain.candidate import Candidate
from heapwatch.explain.census import Census, GrowingType
from heapwatch.explain.comparison import MOST_WEIGHED, Comparison, Growing, described, foremost, read_apart
from heapwatch.explain.findings import OUTSIDE, Finding
from heapwatch.explain.garbage import Uncollected
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.remedies import remedy_for_type
from heapwatch.explain.tracing import FRAMES, made_at
from heapwatch.explain.weigh import newest_of
from heapwatch.judge.growth import FEWEST_ROUNDS
from heapwatch.judge.level import LevelSeries
from heapwatch.measure.introspection.roots import Root

ROUNDS = 24
LEAST_BYTES = 4000  # a round; a log of plain numbers takes less
_LEAST_NATIVE_BYTES = 100_000  # a round
_WARM_UP_SHARE = 0.25
_STILL = 6  # rounds without growth, after the warm-up, that end the check
_COUNTS = 8  # of all objects, in all rounds
_TYPES = 4
_WEIGH_SECONDS = 1.0  # for each; the test stands still meanwhile
_EXPLAINS = 0.5  # least share of malloc's growth that a container has to hold to be its cause


class GrowthCheck:
    """One check of a unit of work.

    Args:
        rounds: most rounds for which the unit runs.
        allow: paths that may grow, or their ends, in which `*` matches anything, and bytes a round.
        roots: where the unit may keep objects, in addition to modules and running functions.

    Raises:
        ValueError: too few rounds to judge by, or something else that cannot be allowed.

    """

    def __init__(
        self,
        *,
        rounds: int = ROUNDS,
        allow: str | float | Sequence[str | float] = (),
        roots: Callable[[], list[Root]] = list,
    ) -> None:
        if not isinstance(rounds, int) or rounds < FEWEST_ROUNDS:
            raise ValueError(f"growth cannot be judged in {rounds} rounds; it takes {FEWEST_ROUNDS} at least")
        allowed: list[Any] = list(allow) if isinstance(allow, (list, tuple, set, frozenset)) else [allow]
        wrong = [entry for entry in allowed if not isinstance(entry, (str, int, float))]
        if wrong:
            raise ValueError(f"allow={wrong[0]!r}: a path or a number of bytes a round is allowed")
        self.rounds = rounds
        self._patterns = [_pattern(entry) for entry in allowed if isinstance(entry, str)]
        self._least = max([LEAST_BYTES, *(float(entry) for entry in allowed if not isinstance(entry, str))])
        self._comparison = Comparison(roots)
        self._inventory = self._comparison.inventory
        self._census = Census(self._comparison.now, unlimited=True, fewest=3)
        self._memory = ProcessMemory(self._comparison.now)
        self._uncollected = Uncollected(self._census, self._comparison.now)
        self._unreached: list[Finding] = []

    @property
    def done(self) -> int:
        """Number of rounds so far."""
        return self._comparison.readings

    def run(self, unit: Callable[[], object]) -> list[Growing]:
        """Run the unit until it can be judged; returns what grows, fastest first."""
        while self.done < self.rounds:
            unit()
            read_apart(self._read)
            if self.done >= FEWEST_ROUNDS and not self._moved():
                return []
        findings = read_apart(self._judge)
        if any(growing.site is None and growing.name in self._inventory.known for growing in findings):
            return self._traced(unit, findings)
        return findings

    def _read(self) -> None:
        collected = gc.isenabled()
        self._comparison.read()
        if not collected:
            self._uncollected.count()
        if self.done % max(1, self.rounds // _COUNTS) == 0:
            self._count(collected)  # takes longer than the rest
        self._memory.make_due()
        self._memory.read_parts()

    def _count(self, collected: bool) -> None:
        if not collected:
            self._uncollected.examine()
            return
        self._census.count()
        if self._native(self._start) is not None:
            self._unreached = self._census.search(self._inventory.ids())

    @property
    def _start(self) -> float:
        return max(2.0, _WARM_UP_SHARE * self.done)

    def _moved(self) -> bool:
        """Whether anything has grown in the last rounds."""
        since = max(2.0, self.done - _STILL)
        levels = [known.items for known in self._inventory.known.values()]
        levels += [known.counts for known in self._census.types.values()]
        levels.append(self._uncollected.counts)
        processes = [bucket.last for bucket in self._memory.processes.since(since)]
        return (
            any(_ends_higher(level, since) for level in levels)
            or bool(processes and processes[-1] > min(processes))
            or self._native(since) is not None
        )

    def _native(self, since: float) -> float | None:
        """Growth of malloc's blocks in use, in bytes a round; None if there is none."""
        growth = self._memory.used.growth(since)
        return growth.per_second if growth.rising and growth.per_second >= _LEAST_NATIVE_BYTES else None

    def _judge(self) -> list[Growing]:
        rising = [one for one in self._inventory.known.values() if one.items.growth(self._start).rising]
        weighed = [
            self._comparison.weighed(known, self._start, _WEIGH_SECONDS) for known in rising[:MOST_WEIGHED]
        ]
        findings: list[Growing] = []
        bounded: list[Candidate] = []
        for _, candidate in foremost((one.bytes_per_minute, one) for one in weighed):
            if candidate.bounded:
                bounded.append(candidate)
            elif self._matters(candidate):
                # The candidate's seconds are rounds.
                items = candidate.growth.per_second * candidate.known.multiplicity
                findings.append(described(candidate, candidate.bytes_per_minute / 60, items))
        findings += self._processes()
        if not findings:
            findings += self._cycles() or self._types(bounded)
        # What fills a buffer with a bound is no leak, and explains as much of malloc's growth.
        explained = sum(one.bytes or 0.0 for one in findings) + sum(
            one.bytes_per_minute / 60 for one in bounded
        )
        findings += self._unexplained(explained)
        return [one for one in findings if not any(allowed.fullmatch(one.name) for allowed in self._patterns)]

    def _matters(self, candidate: Candidate) -> bool:
        # The memory that a graph keeps alive cannot be measured.
        return candidate.traits.graph or candidate.bytes_per_minute / 60 >= self._least

    def _unexplained(self, explained: float) -> list[Growing]:
        """Growth of malloc's blocks that the other findings do not explain."""
        native = self._native(self._start)
        if native is None or native <= 2 * explained or native <= self._least:
            return []
        for known in self._unreached:
            growing = unreached_container(known)
            if growing.bytes is not None and growing.bytes >= _EXPLAINS * native:
                return [growing]
        return [Growing("memory outside Python objects", "malloc", native)]

    def _processes(self) -> list[Growing]:
        growth = self._memory.processes.growth(self._start)
        if not growth.rising:
            return []
        nbytes = self._memory.workers.growth(self._start).per_second or None
        remedy = "end them: `close()` of the environment or pool, `process.join()`"
        site = self._comparison.describer.processes_started()
        return [Growing("child processes", "workers", nbytes, growth.per_second, site, remedy=remedy)]

    def _cycles(self) -> list[Growing]:
        """Reference cycles that stay because the program has switched the collector off."""
        garbage = self._uncollected.latest
        if gc.isenabled() or garbage is None or not garbage.objects:
            return []
        if not self._uncollected.counts.growth(self._start).rising:
            return []
        rate = self._uncollected.per_second(self._start)
        size = None if garbage.each_bytes is None else rate * garbage.each_bytes
        if rate <= 0 or (size is not None and size < self._least):
            return []
        site = None if garbage.key is None else self._comparison.describer.stored_at(garbage.key)
        name = f"uncollected cycles of {', '.join(garbage.types)}"
        return [Growing(name, "garbage", size, rate, site, remedy=remedy_for_type(None))]

    def _types(self, bounded: list[Candidate]) -> list[Growing]:
        inside = {name for candidate in bounded for name in candidate.traits.classes}
        growing = [
            (known, growth)
            for known, growth in self._census.growing(self._start)
            if growth.per_second >= 0.9 and known.name not in inside
        ][:_TYPES]
        self._census.inspect(growing, self._inventory.anchors, _TYPES)
        found = [self._type(known, growth.per_second) for known, growth in growing]
        return [one for one in found if (one.bytes or 0.0) >= self._least]

    def _type(self, growing_type: GrowingType, rate: float) -> Growing:
        size = rate * growing_type.each_bytes if growing_type.each_bytes else None
        return Growing(
            growing_type.name, "instances", size, rate, holders=growing_type.holders or ("nothing in Python",)
        )

    def _traced(self, unit: Callable[[], object], findings: list[Growing]) -> list[Growing]:
        """The findings, with lines that were not known from one more round under `tracemalloc`."""
        if tracemalloc.is_tracing():
            return findings
        tracemalloc.start(FRAMES)
        try:
            unit()
            return [self._with_line(growing) for growing in findings]
        finally:
            tracemalloc.stop()

    def _with_line(self, growing: Growing) -> Growing:
        container = self._inventory.known.get(growing.name)
        if growing.site is not None or container is None:
            return growing
        return replace(growing, site=made_at(newest_of(container, self._inventory)))


def unreached_container(container: Finding) -> Growing:
    """A container without a path; its holders are named instead."""
    return Growing(
        container.path or OUTSIDE,
        container.type,
        container.bytes_per_minute / 60 or None,
        (container.items_per_minute or 0.0) / 60,
        container.site,
        remedy=container.remedy,
    )


def _pattern(path: str) -> re.Pattern[str]:
    """What matches this path, and a longer one that ends with it: `test_it().trainer.history`."""
    return re.compile(r"(.*\.)?" + ".*".join(map(re.escape, path.split("*"))))


def _ends_higher(level: LevelSeries, since: float) -> bool:
    """Whether a level was higher in the last rounds than ever before."""
    buckets = level.since(float("-inf"))
    before = [bucket.last for bucket in buckets if bucket.end <= since]
    after = [bucket.last for bucket in buckets if bucket.end > since]
    return bool(before and after) and max(after) > max(before)
