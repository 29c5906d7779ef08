"""Memory as it was read for some time, with the judge of its levels, and containers that grow in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from heapwatch.explain.attribution import explain
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.findings import Explanation
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.weigh import ItemTraits
from heapwatch.judge.component import MEMORY
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.trainer import Sample, TrainerJudge

MB = 1e6


class JudgedMemory(ProcessMemory):
    """Memory with the judge of its levels."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.judge = TrainerJudge()


def memory(
    per_minute: float, seconds: float, *, start: float = 500 * MB, limit: float = 20e9, retained: float = 0.0
) -> JudgedMemory:
    """Levels that rise steadily."""
    return curve(lambda at: start + per_minute * at / 60, seconds, limit, retained)


def curve(
    level: Callable[[float], float], seconds: float, limit: float = 20e9, retained: float = 0.0
) -> JudgedMemory:
    """Levels of every five seconds; of what they rise by, a share is what the allocator keeps."""
    return next(found for _, found in curves(level, [int(seconds)], limit, retained))


def curves(
    level: Callable[[float], float], times: Iterable[int], limit: float = 20e9, retained: float = 0.0
) -> Iterator[tuple[int, JudgedMemory]]:
    """The same levels at several times, one after the other."""
    found, done = JudgedMemory(clock=lambda: 0.0), 0
    found.limit = int(limit)
    for time in times:
        for at in range(done, time, 5):
            now = level(at)
            kept = retained * (now - level(0))
            for series, value in ((found.resident, now), (found.private, now), (found.retained, kept)):
                series.add(at, value)
            if found.judge.is_due(at):
                found.judge.observe(at, Sample({MEMORY: now}, virtual=now, retained=kept))
            done = at + 5
        yield time, found


def container(
    length: Callable[[float], float], seconds: float, each: float = 20_000, every: int = 1
) -> KnownContainer:
    """A list whose length was read so often, and whose items were measured at the end."""
    known = KnownContainer("trainer.history", "list", "list")
    for at in range(0, int(seconds), every):
        known.items.add(at, round(length(at)))
    known.weighed_items = known.items.last or 0.0
    known.held.add(seconds, known.weighed_items * each)
    return known


def candidate(items_per_minute: float, each: float, seconds: float, **about: Any) -> Candidate:
    known = container(lambda at: items_per_minute * at / 60, seconds, each)
    return Candidate(known, known.items.growth(0.25 * seconds), **about)


def several_buffers(number: int) -> list[Candidate]:
    several = [candidate(2400, 20_000, 100, capacity=30_000) for _ in range(number)]
    for at, one in enumerate(several):
        one.known.path = f"agents[{at}].memory"
    return several


def item(*ids: int, opaque: bool = True, graph: bool = False) -> ItemTraits:
    return ItemTraits("Tensor", frozenset(ids), opaque, graph, None, frozenset())


def judged(seconds: float, grown: ProcessMemory, *candidates: Candidate, **about: Any) -> Explanation:
    return explain(growth_of(grown, seconds), candidates, **about)


def growth_of(grown: ProcessMemory, seconds: float) -> MemoryGrowth:
    return MemoryGrowth(grown, 0.0, seconds, grown.judge.leaks if isinstance(grown, JudgedMemory) else ())
