"""The explainer: a thread that searches for what grows, within its share of the time."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Protocol

from heapwatch.collectors.progress import Progress
from heapwatch.collectors.readings import Readings
from heapwatch.explain.attribution import TOO_EARLY_SECONDS, explain, is_unexplained, plausible
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.census import Census, GrowingType
from heapwatch.explain.cleaned import Cleaned, matters
from heapwatch.explain.describe import Describer
from heapwatch.explain.findings import Explanation, Finding, grows_in_workers
from heapwatch.explain.garbage import Uncollected
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.levels import Declared, finished, with_past_bound
from heapwatch.explain.memory import FIRST_PAUSE_SECONDS, FIRST_SECONDS, NO_PROGRESS, ProcessMemory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.rises import Rises
from heapwatch.explain.schedule import HURRIED, SHARE, Budget, LogLimit, schedule_for
from heapwatch.explain.touched import TouchedArrays
from heapwatch.explain.tracing import Tracer
from heapwatch.explain.weigh import weigh
from heapwatch.judge.component import ENTITIES, MEMORY, WORKERS, Component
from heapwatch.judge.level import FloorGrowth, is_steady
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.trainer import Sample, TrainerJudge
from heapwatch.judge.verdict import SERIOUS
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.exclusive_reads import has_lock
from heapwatch.measure.introspection.roots import HOSTED, OWN_THREADS, Root
from heapwatch.measure.process.own_time import own_time
from heapwatch.runtime import environment
from heapwatch.runtime.failures import raised
from heapwatch.runtime.owned_reads import OwnedReads
from heapwatch.text.numbers import wait

log = logging.getLogger("heapwatch")

SLICE_SECONDS = 0.001
NOW_SECONDS = 10.0  # for an explanation that is asked for
_WAITED_AT_ONCE = 0.05
_FIRST_TICKS_SECONDS = 0.02
_WAITING_SECONDS = 1.0  # while the budget is used up: a wake-up alone costs a tenth of a millisecond
# Between the first walks through the program's objects, and after so many without a new container.
_FIRST_ROUNDS_SECONDS = (0.0, 4.0, 8.0)
_ROUNDS_WITHOUT_NEWS = 3
_IDLE_ROUND_SECONDS = 60.0
_NAMED_SECONDS = 10.0  # in which what the first walk has found is read and weighed, before a search
_CENSUS_SECONDS = 10.0
_INSPECT_SECONDS = 5.0
_SEARCH_SECONDS = 8.0
_TRACE_SECONDS = 5.0
_NATIVE_SECONDS = 1.0
_VISITS_SECONDS = 5.0
_WEIGHED_AT_ONCE = 3
_MOST_WEIGHED = 40
_MOST_DESCRIBED = 40
_MOST_FOLLOWED = 3  # findings whose containers are read whenever memory is
_TYPES_REPORTED = 3
# Activities that need a list of all objects.
_AMONG_ALL = ("census", "search", "inspect", "garbage")
_TRACED_SHARE = 0.1
_LONGEST_PAUSE_SECONDS = 10.0  # longest pause before the next evaluation
_ENDING_SECONDS, _MOST_RECENT = 20.0, 8  # the longest time between two evaluations; more than it has
_OVERDUE_SECONDS = 30.0  # an evaluation that is due for so long is made though the budget is used up
_PAUSES, _PAUSES_ADVANCED = 1500.0, 150.0  # pause after an activity, as a multiple of its CPU time
_WALK_PAUSES, _WALK_PAUSES_ADVANCED = 500.0, 150.0  # pause after a walk, likewise


class Visits(Protocol):
    """Visits of worker processes, in steps that do not wait."""

    def step(self, grows: bool) -> None:
        """Begin a visit if the workers grow, or take what it has found."""

    def with_names(self, explanation: Explanation) -> Explanation:
        """The explanation with what the last visit has found."""

    def abandon(self) -> None:
        """In a forked child: the visit belongs to the parent."""

    def stop(self) -> None:
        """End a visit."""


class Explainer:
    """Finds what grows and keeps the latest explanation.

    It runs in a daemon thread, in slices of about a millisecond. `Budget` limits their share of the time.

    Args:
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.
        extra_roots: returns further roots for the walk.
        progress: returns the progress that the program reported.
        reads: asks the thread that may read what it changes.
        readings: returns the levels that are not read here, such as what the trainer declared; None if a
            collector hangs.
        paths: where each declared buffer is, by name.
        bounded: returns items and bound of each container that has one, as they were read last.
        other_machines: returns how many machines of the program's cluster are not looked at.
        workers: visits worker processes; None to name only what grows in this process.

    Attributes:
        latest: the newest explanation; `now` has what came to exceed its bound since then, too.
        enabled: False where HEAPWATCH_EXPLAIN is off, or where no lock makes reads of objects safe; then
            levels are judged, and no object is looked at.
        judge: judges all levels every 30 seconds.
        judged_at: when the newest explanation was made, in seconds since the epoch; None before the first.
        spent_on: CPU seconds by activity; for `trace` the time for which allocations were traced.

    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = own_time,
        extra_roots: Callable[[], list[Root]] = list,
        progress: Callable[[], Progress] = lambda: NO_PROGRESS,
        reads: OwnedReads | None = None,
        readings: Callable[[], Readings | None] = lambda: Readings(()),
        paths: Callable[[], dict[str, str]] = dict,
        bounded: Callable[[], Mapping[Component, tuple[float, float]]] = dict,
        other_machines: Callable[[], int] = int,
        workers: Visits | None = None,
    ) -> None:
        self._reads = reads or OwnedReads()
        self.inventory = Inventory(clock, spent, extra_roots, self._reads.ask)
        self.census = Census(clock)
        self.uncollected = Uncollected(self.census, clock)
        self.tracer = Tracer(clock)
        self.workers = workers
        self._other_machines = other_machines
        self.memory = ProcessMemory(clock, progress)
        self.rises = Rises(self._reads.ask, self.memory.resident_now, clock)
        self.latest = Explanation("too early", 0.0, 0.0, 0.0)
        self.spent_on = dict.fromkeys(("read", "walk", "weigh", "judge", "census", "trace", "ask"), 0.0)
        self._describer = Describer(self.inventory)
        self._touched = TouchedArrays(self.inventory)
        self._readings = readings
        self._paths = paths
        self._bounded = bounded
        self._declared = Declared()
        self.judge = TrainerJudge()
        self.judged_at: float | None = None
        self._clock = clock
        self._spent = spent
        self._began = clock()
        self.enabled = environment.is_on(environment.EXPLAIN)
        self._budget = Budget(clock, SHARE)
        self._log_limit = LogLimit()
        self._due = dict.fromkeys(_AMONG_ALL, self._began)
        self._schedule = HURRIED
        self._walking = False
        self._walked = 0.0
        self._turn = 0
        self._searching = self._workers_grow = False
        self._growing_types: list[tuple[GrowingType, FloorGrowth]] = []
        self._long: list[Finding] = []
        self._storages_unread = False
        self._stopped = threading.Event()
        self._recent: deque[tuple[float, Explanation]] = deque(maxlen=_MOST_RECENT)
        self._cleaned: Cleaned | None = None
        self._asked, self._answered = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def now(self) -> Explanation:
        """The newest explanation, with what exceeds its bound now."""
        return with_past_bound(self.latest, self.judge.past_bound(self._bounded()))

    def start(self) -> None:
        """Start the thread."""
        if self.enabled and not has_lock():
            log.warning("heapwatch: no search for what grows: this Python runs without its global lock")
            self.enabled = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"{OWN_THREADS}explain", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread; the latest explanation stays."""
        self._stopped.set()
        self._asked.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def abandon(self) -> None:
        """In a forked child: drop the thread, which belongs to the parent."""
        self._stopped.set()
        self._thread = None
        self._asked, self._answered = threading.Event(), threading.Event()
        self.memory.shared_files.close()
        self.rises.stop()
        if self.workers is not None:
            self.workers.abandon()
        self._reads.abandon()

    def explain_now(self, seconds: float = NOW_SECONDS) -> Explanation:
        """Have the thread read everything again and judge it; at the deadline the latest explanation.

        Reading an object of the program may never return. The thread is waited for in short pieces, so that
        signals and pending calls still reach the caller.
        """
        until = time.monotonic() + seconds
        self._answered.clear()
        self._asked.set()
        while not self._answered.is_set() and time.monotonic() < until:
            if self._thread is None or not self._thread.is_alive():
                break
            self._answered.wait(_WAITED_AT_ONCE)
        return self.latest

    def conclude(self, seconds: float = 0.0) -> Explanation:
        """End the search; objects are read again within `seconds`."""
        if seconds:
            self.explain_now(seconds)
        self._stopped.set()
        self._asked.set()
        self.latest = self._with_cleanup(_at_its_end(self._concluded()))
        return self.latest

    def cleaned(self, action: str, freed: float, left: float) -> None:
        """Count growth from now on, if a cleanup gave back `freed` bytes and that matters; for any thread.

        `left` bytes are resident after it.
        """
        if not matters(freed, left + freed):
            return
        now, before = self._clock(), self._concluded()
        for container in list(self.inventory.known.values()):
            container.leaking_since = None
        self._cleaned = Cleaned(action, now, freed, left, before)
        self.memory.cleaned_at = self._due["judge"] = now
        self._recent.clear()
        early = Explanation("too early", before.seconds, 0.0, 0.0, leaks=before.leaks)
        self.latest = self._with_cleanup(early)

    def _with_cleanup(self, explanation: Explanation) -> Explanation:
        if self._cleaned is None:
            return explanation
        said = self._cleaned.text(self._clock(), self.memory.resident_now())
        return replace(explanation, after_cleanup=said)

    def _concluded(self) -> Explanation:
        """The latest explanation, or a leak of just before: as a program ends, it frees what leaked."""
        since = self.latest.seconds - _ENDING_SECONDS
        recent = tuple(self._recent)  # the thread of the search may be adding one
        serious = [one for one in recent if one[1].verdict in SERIOUS and one[1].seconds >= since]
        return max(reversed(serious), key=itemgetter(0))[1] if serious else self.latest

    def _read_again(self) -> None:
        allow_capture()
        self.memory.make_due()
        self._read_memory()
        for container in list(self.inventory.known.values()):
            container.due = 0.0
        self.inventory.lengths.read(0.5)
        self._weigh(_MOST_WEIGHED)
        self._judge()

    def tick(self) -> float:
        """Do one slice of what is due; returns the seconds until the next."""
        allow_capture()
        now = self._clock()
        began = self._spent()
        if self._is_due("memory", now, self._schedule.reading):
            self._read_memory()
            # It is read while the budget is used up, too, which it would be for ever if it cost all of it.
            longest = _LONGEST_PAUSE_SECONDS if now >= self._began + FIRST_SECONDS else FIRST_PAUSE_SECONDS
            self._pause("memory", now, 2 * (self._spent() - began), longest)
        if self.judge.is_due(now):
            self.judge.observe(now, self._sample())
        if not self.enabled:
            if self._is_due("judge", now, self._schedule.judge):
                self._judge()
            return _WAITING_SECONDS
        # A verdict that is not renewed for minutes is none.
        overdue = now >= self._due.get("judge", now) + _OVERDUE_SECONDS
        allowed = self._budget.allows() or overdue
        activity = "read"
        try:
            if allowed:
                activity = self._slice(now)
        finally:
            cost = self._spent() - began
            self._budget.charge(cost + self._reads.seconds - self.spent_on["ask"])
            self.spent_on["census" if activity in _AMONG_ALL else activity] += cost
            self.spent_on["ask"] = self._reads.seconds
        if self._is_due("native", now, _NATIVE_SECONDS):
            growth = sum(one.bytes_per_minute for one in self.latest.findings if one.kind == "native")
            if self._searching:
                self.rises.step(growth)
        if self.workers is not None and self._is_due("visits", now, _VISITS_SECONDS):
            self.workers.step(self._workers_grow)
        longest = _LONGEST_PAUSE_SECONDS if activity == "judge" else float("inf")
        self._pause(activity, now, cost, longest)
        if not allowed:
            return _WAITING_SECONDS
        if self.inventory.rounds < 2:
            return _FIRST_TICKS_SECONDS
        return HURRIED.tick if self._walking else self._schedule.tick

    def _slice(self, now: float) -> str:
        """Do one activity that is due; returns its name."""
        if self._is_due("judge", now, self._schedule.judge):
            self._judge()
            return "judge"
        if self._is_due("weigh", now, self._schedule.weigh):
            self._weigh(_WEIGHED_AT_ONCE)
            return "weigh"
        # Time in advance is first for the walk: what it finds may be the name that is searched for.
        may_search = self.inventory.rounds > 0 or not self._budget.has_advanced
        if self._searching and may_search and (searched := self._search(now)):
            return searched
        if self._is_due("trace", now, _TRACE_SECONDS) and self._trace():
            return "judge"
        walks = self._walking or now >= self._due.get("round", 0.0)
        # A container that is found and not read twice is of no use.
        self._turn = (self._turn + 1) % 2
        if (not walks or not self._turn) and (self.inventory.lengths.read(SLICE_SECONDS) or not walks):
            return "read"
        if not self._walking:
            self._walked = self.spent_on["walk"]
        self._walking = not self.inventory.discover(SLICE_SECONDS)
        if not self._walking:
            # The time for the next walk is saved up: one that crawls ends with places that are gone.
            pauses = _WALK_PAUSES_ADVANCED if self._budget.has_advanced else _WALK_PAUSES
            cost = self.spent_on["walk"] - self._walked
            if self.inventory.rounds == 1:
                for what in _AMONG_ALL:
                    self._due[what] = max(self._due[what], now + _NAMED_SECONDS)
            self._due["round"] = now + max(self._round_pause(), pauses * cost)
        return "walk"

    def _search(self, now: float) -> str:
        """Do one step of the search among all objects; returns its name, empty if none is due."""
        collects = gc.isenabled()
        # If the collector is off, uncollected objects are counted instead, and a census would add to them.
        if collects and self._is_due("census", now, _CENSUS_SECONDS):
            self.census.count()
            return "census"
        if self._is_due("search", now, _SEARCH_SECONDS):
            self._long = self.census.search(self.inventory.ids())
            return "search"
        if not collects and self._is_due("garbage", now, _SEARCH_SECONDS):
            self.uncollected.examine()
            return "garbage"
        is_left = collects and not self.census.is_inspected(self._growing_types, _TYPES_REPORTED)
        if is_left and self._is_due("inspect", now, _INSPECT_SECONDS):
            self.census.inspect(self._growing_types, self.inventory.anchors, _TYPES_REPORTED)
            return "inspect"
        return ""

    def _round_pause(self) -> float:
        """Seconds until the next walk: more if the last ones found nothing new and all growth has a name."""
        rounds = self.inventory.rounds
        if rounds < len(_FIRST_ROUNDS_SECONDS):
            return _FIRST_ROUNDS_SECONDS[rounds]
        is_idle = rounds - self.inventory.newest_round > _ROUNDS_WITHOUT_NEWS and not self._searching
        return max(_IDLE_ROUND_SECONDS, self._schedule.walk) if is_idle else self._schedule.walk

    def _set_schedule(self, levels: MemoryGrowth, explanation: Explanation) -> None:
        filling = sum(
            one.bytes_per_minute for one in explanation.findings if one.kind == "buffer" and one.fits
        )
        schedule = schedule_for(levels, self.inventory.rounds, filling)
        if schedule is not self._schedule:
            self._schedule = schedule
            self.inventory.lengths.shortest_interval = schedule.reading
            self._due["round"] = min(self._due.get("round", 0.0), levels.now + schedule.walk)

    def _pause(self, activity: str, now: float, cost: float, longest: float = float("inf")) -> None:
        """Set the pause after an activity by its cost, so that none uses the whole budget."""
        pauses = _PAUSES_ADVANCED if self._budget.has_advanced else _PAUSES
        self._due[activity] = max(self._due.get(activity, 0.0), now + min(longest, pauses * cost))

    def _is_due(self, what: str, now: float, interval: float) -> bool:
        if now < self._due.setdefault(what, now + interval):
            return False
        self._due[what] = now + interval
        return True

    def _work(self) -> None:
        pause = _FIRST_TICKS_SECONDS
        while True:
            asked = self._asked.wait(pause)
            if self._stopped.is_set():
                self.rises.stop()
                if self.workers is not None:
                    self.workers.stop()
                self.memory.close()
                return
            try:
                if asked:
                    self._asked.clear()
                    self._read_again()
                pause = self.tick()
            except Exception as error:
                pause = _WAITING_SECONDS
                log.debug("a slice of the inventory failed: %s", raised(error))
            finally:
                if asked:
                    self._answered.set()

    def _read_memory(self) -> None:
        """Read the memory and what its growth was put down to, also while the budget is used up.

        Readings of the two that lie far apart cannot be compared.
        """
        known = list(self.inventory.known.values())
        self.memory.referenced = max((one.shared_bytes for one in known if one.shared_share), default=0.0)
        self.memory.read_resident()
        self.memory.read_parts()
        named = [
            finding.path for finding in self.latest.findings[:_MOST_FOLLOWED] if finding.path is not None
        ]
        self.inventory.lengths.read_named(named)
        if not gc.isenabled():
            self.uncollected.count()

    def _weigh(self, most: int) -> None:
        """Measure the bytes of the growing containers that have grown most since they were measured."""
        now = self._clock()
        start = self._levels(now).start
        growing = [
            (container.weighed_items / max(1.0, container.items.last or 0.0), container)
            for container in list(self.inventory.known.values())
            if container.weighing_due <= now and container.items.growth(start).total > 0
        ]
        growing.sort(key=lambda entry: entry[0])
        storages_unread = [
            weigh(container, self.inventory, now, ask=self._reads.ask)
            for done, container in growing[:most]
            if done < 0.95
        ]
        if storages_unread:
            self._storages_unread = any(storages_unread)

    def _judge(self) -> Explanation:
        levels, cleaned_at = self._levels(self._clock()), self.memory.cleaned_at
        growing = []
        start = levels.start
        for container in list(self.inventory.known.values()):
            growth = self._growth_of(container, start)
            if growth.total > 0 and growth.steps > 2:
                growing.append((growth.per_second * (container.bytes_each or 1.0), container))
        growing.sort(key=lambda entry: -entry[0])
        candidates = self._describer.describe_all(
            [(container, self._growth_of(container, start)) for _, container in growing[:_MOST_DESCRIBED]]
        )
        with suppress(OSError):
            self._touched.read(levels.now)
        touched, segments = self._touched.known.values(), self.memory.shared_files
        candidates += [Candidate(one, one.items.growth(start), capacity=one.capacity) for one in touched]
        candidates += [
            self._describer.describe_segments(one, one.items.growth(start), segments.sites.get(path, set()))
            for path, one in segments.known.items()
        ]
        walked = self.inventory.rounds > 0
        explanation = explain(levels, candidates, walked=walked, searched=self.enabled)
        self._searching = self.enabled and is_unexplained(explanation, levels)
        if self._searching:
            self._budget.advance()
            explanation = explain(levels, candidates, self._types(levels), self.census.seconds, walked=walked)
        self._workers_grow = grows_in_workers(explanation) is not None
        if self.workers is not None:
            explanation = self.workers.with_names(explanation)
        explanation = replace(
            explanation,
            findings=tuple(map(self._located, explanation.findings)),
            unread=self._unread(),
            other_machines=self._other_machines(),
        )
        explanation = finished(explanation, self.judge, levels, self._declared)
        explanation = self._with_cleanup(explanation)
        if cleaned_at != self.memory.cleaned_at:  # what was read before it no longer holds
            return explanation
        leaking = {one.path for one in explanation.findings if one.is_leak and one.kind != "worker"}
        for path, container in list(self.inventory.known.items()):
            since = start if container.leaking_since is None else container.leaking_since
            container.leaking_since = since if path in leaking else None
        self.judged_at = time.time()
        if not self._stopped.is_set():
            self.latest = explanation
        self._recent.append((self.memory.held, explanation))
        self._set_schedule(levels, explanation)
        line = self._log_limit.line(explanation, levels.now)
        if line is not None:
            log.log(line.level, "%s", line.text)
        return explanation

    @staticmethod
    def _growth_of(container: KnownContainer, start: float) -> FloorGrowth:
        """How a container grows; one that leaked is not judged anew when `start` moves."""
        growth, since = container.items.growth(start), container.leaking_since
        return growth if growth.rising or since is None else container.items.growth(min(since, start))

    def _located(self, finding: Finding) -> Finding:
        """The finding with the line that no search of its container can tell."""
        path = finding.path or ""
        if finding.kind == "worker" and finding.items_per_minute and not path:
            return replace(finding, site=self._describer.processes_started())
        if finding.kind == "worker" and path.startswith(HOSTED):  # filled from another process
            return replace(finding, site=self._describer.hosted_filled_at())
        return replace(finding, site=self.rises.site) if finding.kind == "native" else finding

    def _unread(self) -> tuple[str, ...]:
        """What could not be read the last time, as other threads might have been changing it."""
        unread = {
            "autograd graphs": self.inventory.lengths.graphs_unread,
            "whole storages of tensors": self._storages_unread,
        }
        return tuple(what for what, is_unread in unread.items() if is_unread)

    def _types(self, levels: MemoryGrowth) -> list[Finding]:
        """What the search among all objects has found."""
        if not gc.isenabled():
            return [*self._long, *self._describer.describe_garbage(self.uncollected, levels)]
        self._growing_types = self.census.growing(levels.start)[: 4 * _TYPES_REPORTED]
        findings = [
            replace(
                plausible(self._describer.describe_type(known, growth), levels),
                steady=is_steady(known.counts, self.memory.progress, levels.start),
            )
            for known, growth in self._growing_types
        ]
        findings.sort(key=lambda finding: (finding.bytes is None, -finding.bytes_per_minute))
        return [*self._long, *findings[:_TYPES_REPORTED]]

    def _trace(self) -> bool:
        """Trace allocations for what grows at a line that is not known; whether it was tried.

        Growth that is no leak is traced only where it is fast, as tracing slows the program.
        """
        for finding in self.latest.findings[:_TYPES_REPORTED]:
            if not finding.is_leak and self._schedule is not HURRIED:
                continue
            container = self.inventory.known.get(finding.path or "")
            if (
                container is None
                or finding.share < _TRACED_SHARE
                or not self._describer.is_traceable(container)
            ):
                continue
            if self.tracer.may_trace(container.path):
                self._describer.trace(container, self.tracer)
                self.spent_on["trace"] = self.tracer.seconds
                return True
        return False

    def _levels(self, now: float) -> MemoryGrowth:
        return MemoryGrowth(self.memory, self._began, now, self.judge.leaks)

    def _sample(self) -> Sample:
        """All levels of now: those of memory as they are read here, the others as they are exposed.

        Where they cannot be read now it is empty: without the bytes of buffers, memory would seem to jump.
        """
        readings, memory = self._readings(), self.memory
        if readings is None:
            return Sample()
        sample = readings.sample(time.time())
        self._declared = Declared(self._paths(), sample.to_fill)
        levels = dict(sample.levels)
        for component, count in levels.items():
            if component.resource in ENTITIES:
                memory.entities[component].add(self._clock(), count)
        own = memory.own.last
        if own is not None:
            levels[MEMORY] = own - (sample.buffer_bytes or 0.0) - self._touched.risen
        if memory.workers.last is not None:
            levels[WORKERS] = memory.workers.last
        for device, gpu in memory.devices.items():
            levels.setdefault(Component("gpu_memory", str(device)), gpu.last or 0.0)
        return replace(
            sample,
            levels=levels,
            cycles=memory.cycles.last if sample.cycles is None else sample.cycles,
            steps=sample.steps
            or memory.steps.last
            or None,  # a program that has counted none may never count
            retained=memory.retained.last,
            virtual=memory.virtual.last,
        )


def _at_its_end(explanation: Explanation) -> Explanation:
    """What is said when the program has ended: what was not known yet is not announced for later."""
    if explanation.verdict != "too early":
        return explanation
    findings, missing = explanation.findings, "only a longer run can tell"
    if explanation.seconds < TOO_EARLY_SECONDS:
        findings, missing = (), f"a verdict needs about {wait(TOO_EARLY_SECONDS)}"
    named = tuple(finding for finding in findings if finding.kind != "native")
    return replace(explanation, detail=f"It ended; {missing}.", findings=named, time_left=None)
