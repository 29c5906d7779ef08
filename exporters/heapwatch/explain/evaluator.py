"""Makes an explanation of what was read: growing containers and types, workers, and what the judge found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from heapwatch.explain.attribution import explain, is_unexplained
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.describe import Describer
from heapwatch.explain.findings import Explanation, Finding, grows_in_workers
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.level_reader import LevelReader
from heapwatch.explain.levels import with_judged_levels
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.object_search import ObjectSearch
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.program import Program
from heapwatch.explain.rises import Rises
from heapwatch.explain.touched import TouchedArrays
from heapwatch.judge.level import FloorGrowth
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.trainer import TrainerJudge
from heapwatch.measure.introspection.roots import HOSTED

_MOST_DESCRIBED = 40


class Evaluator:
    """Owns the judge, and makes explanations.

    Args:
        memory: the memory of the process.
        inventory: the containers of the program.
        program: what the trainer declared and exposes.
        rises: finds the line that allocates memory outside Python objects.
        clock: monotonic seconds.

    Attributes:
        enabled: whether containers and objects are searched at all; otherwise levels are judged alone.
        judge: judges all levels every 30 seconds.
        search: the search among all objects.
        needs_search: whether material growth goes on that no container explains.
        workers_grow: whether the memory of worker processes grows.

    """

    def __init__(
        self,
        memory: ProcessMemory,
        inventory: Inventory,
        program: Program,
        rises: Rises,
        clock: Callable[[], float],
    ) -> None:
        self.enabled = True
        self.judge = TrainerJudge()
        self.describer = Describer(inventory)
        self.search = ObjectSearch(inventory, self.describer, clock)
        self.needs_search = self.workers_grow = False
        self._memory = memory
        self._inventory = inventory
        self._program = program
        self._rises = rises
        self._touched = TouchedArrays(inventory)
        self._levels = LevelReader(memory, self._touched, program, clock)
        self._clock = clock
        self._began = clock()

    def observe(self) -> None:
        """Have the judge see all levels of now, if 30 seconds have passed since the last time."""
        now = self._clock()
        if self.judge.is_due(now):
            self.judge.observe(now, self._levels.read())

    def levels(self) -> MemoryGrowth:
        """The growth of memory until now."""
        return MemoryGrowth(self._memory, self._began, self._clock(), self.judge.leaks)

    def evaluate(self, levels: MemoryGrowth, unread: tuple[str, ...] = ()) -> Explanation:
        """Say what grows; `unread` is what could not be read, in words."""
        candidates = self._candidates(levels)
        walked = self._inventory.rounds > 0
        explanation = explain(levels, candidates, walked=walked, searched=self.enabled)
        self.needs_search = self.enabled and is_unexplained(explanation, levels)
        if self.needs_search:  # then once more, with what the search among all objects found
            types, counted = self.search.findings(levels), self.search.census.seconds
            explanation = explain(levels, candidates, types, counted, walked=walked)
        self.workers_grow = grows_in_workers(explanation) is not None
        if self._program.workers is not None:
            explanation = self._program.workers.with_names(explanation)
        explanation = replace(
            explanation,
            findings=tuple(self._located(finding, levels) for finding in explanation.findings),
            unread=unread,
            other_machines=self._program.other_machines(),
        )
        return with_judged_levels(explanation, self.judge, levels, self._levels.declared)

    def remember_leaks(self, explanation: Explanation, start: float) -> None:
        """Note which containers leak, and since when: `start`, unless they have leaked for longer."""
        leaking = {
            finding.path for finding in explanation.findings if finding.is_leak and finding.kind != "worker"
        }
        for path, container in list(self._inventory.known.items()):
            since = start if container.leaking_since is None else container.leaking_since
            container.leaking_since = since if path in leaking else None

    def _candidates(self, levels: MemoryGrowth) -> list[Candidate]:
        """Everything that grows and has a path, the fastest growing containers first."""
        start = levels.start
        growing = []
        for container in list(self._inventory.known.values()):
            growth = growth_of(container, start)
            if growth.total > 0 and growth.steps > 2:
                growing.append((growth.per_second * (container.bytes_each or 1.0), container, growth))
        growing.sort(key=lambda entry: -entry[0])
        candidates = self.describer.describe_all(
            [(container, growth) for _, container, growth in growing[:_MOST_DESCRIBED]]
        )
        with suppress(OSError):
            self._touched.read(levels.now)
        paths = {candidate.known.path for candidate in candidates}
        candidates += [
            Candidate(array, array.items.growth(start), capacity=array.capacity)
            for array in self._touched.known.values()
            if array.path not in paths  # `np.append` replaces an array by a larger one, which is a candidate
        ]
        segments = self._memory.shared_files
        return candidates + [
            self.describer.describe_segments(
                segment, segment.items.growth(start), segments.sites.get(path, set())
            )
            for path, segment in segments.known.items()
        ]

    def _located(self, finding: Finding, levels: MemoryGrowth) -> Finding:
        """The finding with the line that no search of its container can tell."""
        path = finding.path or ""
        if finding.kind == "native":
            probable = self.search.census.probable_type(levels.start, finding.bytes_per_minute)
            if probable is not None and finding.type.startswith("memory"):
                site = self.describer.made_at(probable) or self._rises.site
                return replace(finding, type=f"{finding.type}, probably objects of {probable}", site=site)
            return replace(finding, site=self._rises.site)
        if finding.kind == "worker" and finding.items_per_minute and not path:
            return replace(finding, site=self.describer.processes_started())
        # A container of multiprocessing.Manager, filled from another process.
        if finding.kind == "worker" and path.startswith(HOSTED):
            return replace(finding, site=self.describer.hosted_filled_at())
        return finding


def growth_of(container: KnownContainer, start: float) -> FloorGrowth:
    """How a container grows from `start` on; one that leaked is not judged anew when `start` moves."""
    growth, since = container.items.growth(start), container.leaking_since
    return growth if growth.rising or since is None else container.items.growth(min(since, start))
