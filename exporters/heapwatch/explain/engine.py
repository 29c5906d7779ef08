"""The explainer: a thread that searches for what grows, within its share of the time.

Its activities, by the names under which their CPU time is exported: `read` levels and lengths; `walk` from
the roots of the program to its containers; `weigh` containers that grow; `judge` what was read, and trace the
line that fills a container; take a `census` of all objects where no container explains the growth.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable

from heapwatch.explain.activity import Activity, every
from heapwatch.explain.cleaned import Cleaned, matters
from heapwatch.explain.evaluator import Evaluator
from heapwatch.explain.findings import Explanation, rate_of
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.latest import LatestExplanation
from heapwatch.explain.levels import with_past_bound
from heapwatch.explain.memory import FIRST_PAUSE_SECONDS, FIRST_SECONDS, ProcessMemory
from heapwatch.explain.object_search import TYPES_REPORTED
from heapwatch.explain.program import Program
from heapwatch.explain.rises import Rises
from heapwatch.explain.schedule import CALM, HURRIED, SHARE, Budget, LogLimit, schedule_for
from heapwatch.explain.tracing import Tracer
from heapwatch.explain.weigh import weigh
from heapwatch.explain.worlds import Worlds
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.exclusive_reads import has_lock
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.measure.process.own_time import own_time
from heapwatch.runtime import environment
from heapwatch.runtime.failures import raised
from heapwatch.runtime.owned_reads import OwnedReads

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
_WEIGHED_AT_ONCE = 3
_MOST_WEIGHED = 40
_WEIGHED_SHARE = 0.95  # of its items, from which a container counts as measured
_MOST_FOLLOWED = 3  # findings whose containers are read whenever memory is
_TRACED_SHARE = 0.1
_LONGEST_PAUSE_SECONDS = 10.0  # longest pause before the next evaluation
_OVERDUE_SECONDS = 30.0  # an evaluation that is due for so long is made though the budget is used up
# Pause after an activity, and after a walk, as a multiple of its CPU time: usually, and while CPU time that
# was given in advance lasts.
_PAUSE_FACTOR, _PAUSE_FACTOR_IN_ADVANCE = 1500.0, 150.0
_WALK_PAUSE_FACTOR, _WALK_PAUSE_FACTOR_IN_ADVANCE = 500.0, 150.0


class Explainer:
    """Finds what grows and keeps the latest explanation.

    It runs in a daemon thread, in slices of about a millisecond. `Budget` limits their share of the time.

    Args:
        program: what the trainer declared and exposes.
        reads: asks the thread that may read what it changes.
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.

    Attributes:
        program, memory, inventory, tracer, evaluator, explanations: its parts.
        judged_at: when the newest explanation was made, in seconds since the epoch; None before the first.
        spent_on: CPU seconds by activity; for `trace` the time for which allocations were traced.

    """

    def __init__(
        self,
        program: Program | None = None,
        *,
        reads: OwnedReads | None = None,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = own_time,
    ) -> None:
        self.program = program or Program()
        self._reads = reads or OwnedReads()
        self.memory = ProcessMemory(clock, self.program.progress)
        self.inventory = Inventory(clock, spent, self.program.extra_roots, self._reads.ask)
        self.tracer = Tracer(clock)
        self._rises = Rises(self._reads.ask, self.memory.resident_now, clock)
        self._worlds = Worlds(self.inventory.worlds, self._reads.ask, self.program.found_world, clock)
        self.evaluator = Evaluator(self.memory, self.inventory, self.program, self._rises, clock)
        self.evaluator.enabled = environment.is_on(environment.EXPLAIN)
        self.spent_on = dict.fromkeys(("read", "walk", "weigh", "judge", "census", "trace", "ask"), 0.0)
        self.judged_at: float | None = None
        self.explanations = LatestExplanation()
        self._clock = clock
        self._spent = spent
        self._began = clock()
        self._budget = Budget(clock, SHARE)
        self._log_limit = LogLimit()
        self._schedule = HURRIED
        self._walking = self._reads_next = self._storages_unread = False
        self._walk_began_at = 0.0  # CPU seconds of all walks before it
        self._memory_readings = Activity("read", lambda schedule: schedule.reading, self._read_memory)
        self._evaluations = Activity(
            "judge", lambda schedule: schedule.judge, self._evaluate, longest_pause=_LONGEST_PAUSE_SECONDS
        )
        self._walks = Activity("walk", every(0.0), self._walk, longest_pause=0.0)
        self._searches = self._object_searches()
        # A slice does the first of these that is due, within the budget.
        self._activities = (
            self._evaluations,
            Activity("read", every(5.0), self._worlds.count, lambda: bool(self.inventory.worlds)),
            Activity("weigh", lambda schedule: schedule.weigh, self._weigh),
            *self._searches,
            Activity("judge", every(5.0), self._trace),
            Activity("read", every(0.0), self._read_lengths, longest_pause=0.0),
            self._walks,
        )
        # These take next to no time, and are done beside each slice.
        self._beside = (
            Activity("read", every(1.0), self._follow_native),
            Activity("read", every(5.0), self._visit_workers),
        )
        self._stopped = threading.Event()
        self._asked, self._answered = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def _object_searches(self) -> tuple[Activity, ...]:
        """The activities that list objects, for growth that no container explains."""
        search = self.evaluator.search

        def activity(seconds: float, run: Callable[[], object], is_needed: Callable[[], bool]) -> Activity:
            return Activity("census", every(seconds), run, lambda: self._may_search() and is_needed())

        # Without the garbage collector, uncollected objects are counted instead: a census would add to them.
        return (
            activity(10.0, search.census.count, gc.isenabled),
            activity(10.0, search.census.count_newest, gc.isenabled),
            activity(8.0, search.find_long_containers, lambda: True),
            activity(8.0, search.uncollected.examine, lambda: not gc.isenabled()),
            activity(5.0, search.inspect, lambda: gc.isenabled() and search.has_types_to_inspect()),
        )

    @property
    def enabled(self) -> bool:
        """Whether objects are searched: not where HEAPWATCH_EXPLAIN is off, or no lock makes reads safe."""
        return self.evaluator.enabled

    @property
    def latest(self) -> Explanation:
        """The newest explanation; `now` has what exceeds its bound since then, too."""
        return self.explanations.explanation

    def now(self) -> Explanation:
        """The newest explanation, with what exceeds its bound now."""
        return with_past_bound(self.latest, self.evaluator.judge.past_bound(self.program.bounded()))

    def start(self) -> None:
        """Start the thread."""
        if self.enabled and not has_lock():
            log.warning("heapwatch: no search for what grows: this Python runs without its global lock")
            self.evaluator.enabled = False
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
        self._rises.stop()
        if self.program.workers is not None:
            self.program.workers.abandon()
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
        return self.explanations.conclude(self._clock(), self.memory.resident_now)

    def cleaned(self, action: str, freed: float, left: float) -> None:
        """Count growth from now on, if a cleanup gave back `freed` bytes and that matters; for any thread.

        `left` bytes are resident after it.
        """
        if not matters(freed, left + freed):
            return
        now = self._clock()
        for container in list(self.inventory.known.values()):
            container.leaking_since = None
        self.memory.cleaned_at = self._evaluations.due = now
        self.explanations.begin_anew(Cleaned(action, now, freed, left, self.explanations.with_recent_leak()))

    def tick(self) -> float:
        """Do one slice of what is due; returns the seconds until the next."""
        allow_capture()
        now, began = self._clock(), self._spent()
        if self._memory_readings.begins(now, self._schedule):
            self._read_memory()
            # It is read while the budget is used up, too, which it would be for ever if it cost all of it.
            longest = _LONGEST_PAUSE_SECONDS if now >= self._began + FIRST_SECONDS else FIRST_PAUSE_SECONDS
            self._memory_readings.longest_pause = longest
            self._memory_readings.pause(now, 2 * self._pause_factor * (self._spent() - began))
        self.evaluator.observe()
        if not self.enabled:
            if self._evaluations.begins(now, self._schedule):
                self._evaluate()
            return _WAITING_SECONDS
        # A verdict that is not renewed for minutes is none.
        allowed = self._budget.allows() or now >= self._evaluations.due + _OVERDUE_SECONDS
        done = self._memory_readings
        try:
            if allowed:
                done = self._do_one(now)
        finally:
            cost, asked = self._spent() - began, self._reads.seconds - self.spent_on["ask"]
            self._budget.charge(cost + asked)
            self.spent_on[done.counted_as] += cost
            self.spent_on["ask"] += asked
        done.pause(now, self._pause_factor * cost)
        for activity in self._beside:
            if activity.begins(now, self._schedule):
                activity.run()
        if not allowed:
            return _WAITING_SECONDS
        if self.inventory.rounds < 2:
            return _FIRST_TICKS_SECONDS
        return HURRIED.tick if self._walking else self._schedule.tick

    def _do_one(self, now: float) -> Activity:
        """Do the first activity that is due; returns it, or the walk if nothing was due."""
        for activity in self._activities:
            if activity.begins(now, self._schedule) and activity.run() is not False:
                return activity
        return self._walks

    @property
    def _pause_factor(self) -> float:
        """Pause after an activity as a multiple of its CPU time, so that none uses the whole budget."""
        return _PAUSE_FACTOR_IN_ADVANCE if self._budget.has_advanced else _PAUSE_FACTOR

    def _may_search(self) -> bool:
        """Whether all objects may be searched. The walk comes first: it may find the name that is missing."""
        may_search = self.inventory.rounds > 0 or not self._budget.has_advanced
        return self.evaluator.needs_search and may_search

    def _read_lengths(self) -> bool:
        """Read containers; while a walk goes on, one slice of two is left to it."""
        self._reads_next = not self._reads_next
        is_walking = self._clock() >= self._walks.due
        return (self._reads_next or not is_walking) and self.inventory.lengths.read(SLICE_SECONDS) > 0

    def _walk(self) -> None:
        """Do a slice of the walk through the program's objects."""
        if not self._walking:
            self._walk_began_at = self.spent_on["walk"]
        self._walking = not self.inventory.discover(SLICE_SECONDS)
        if self._walking:
            return
        now = self._clock()
        if self.inventory.rounds == 1:
            for activity in self._searches:
                activity.pause(now, _NAMED_SECONDS)
        # The CPU time for the next walk is saved up first: the places found by a slow walk are out of date.
        factor = _WALK_PAUSE_FACTOR_IN_ADVANCE if self._budget.has_advanced else _WALK_PAUSE_FACTOR
        cost = self.spent_on["walk"] - self._walk_began_at
        self._walks.due = now + max(self._walk_pause(), factor * cost)

    def _walk_pause(self) -> float:
        """Seconds until the next walk: more if the last ones found nothing new and all growth has a name."""
        rounds = self.inventory.rounds
        if rounds < len(_FIRST_ROUNDS_SECONDS):
            return _FIRST_ROUNDS_SECONDS[rounds]
        is_idle = rounds - self.inventory.newest_round > _ROUNDS_WITHOUT_NEWS
        if is_idle and not self.evaluator.needs_search:
            return max(_IDLE_ROUND_SECONDS, self._schedule.walk)
        return self._schedule.walk

    def _set_schedule(self, levels: MemoryGrowth, explanation: Explanation) -> None:
        filling = sum(
            finding.bytes_per_minute
            for finding in explanation.findings
            if finding.kind == "buffer" and finding.fits
        )
        schedule = schedule_for(levels, self.inventory.rounds, filling)
        if schedule is not self._schedule:
            self._schedule = schedule
            self.inventory.lengths.shortest_interval = schedule.reading
            self._walks.due = min(self._walks.due, levels.now + schedule.walk)

    def _work(self) -> None:
        pause = _FIRST_TICKS_SECONDS
        while True:
            asked = self._asked.wait(pause)
            if self._stopped.is_set():
                self._rises.stop()
                if self.program.workers is not None:
                    self.program.workers.stop()
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

    def _read_again(self) -> None:
        allow_capture()
        self.memory.make_due()
        self._read_memory()
        for container in list(self.inventory.known.values()):
            container.due = 0.0
        self.inventory.lengths.read(0.5)
        self._weigh(_MOST_WEIGHED)
        self._evaluate()

    def _read_memory(self) -> None:
        """Read the memory and what its growth was put down to, also while the budget is used up.

        Readings of the two that lie far apart cannot be compared.
        """
        containers = list(self.inventory.known.values())
        # Not the sum: one container may be inside another.
        in_store = (container.shared_bytes for container in containers if container.shared_share)
        self.memory.referenced = max(in_store, default=0.0)
        self.memory.read_resident()
        self.memory.read_parts()
        foremost = self.latest.findings[:_MOST_FOLLOWED]
        self.inventory.lengths.read_named([finding.path for finding in foremost if finding.path])
        if not gc.isenabled():
            self.evaluator.search.uncollected.count()

    def _weigh(self, most: int = _WEIGHED_AT_ONCE) -> None:
        """Measure the bytes of the growing containers that have grown most since they were measured."""
        now, start = self._clock(), self.evaluator.levels().start
        growing = [
            (container.weighed_items / max(1.0, container.items.last or 0.0), container)
            for container in list(self.inventory.known.values())
            if container.weighing_due <= now and container.items.growth(start).total > 0
        ]
        growing.sort(key=lambda entry: entry[0])
        storages_unread = [
            weigh(container, self.inventory, now, ask=self._reads.ask)
            for share, container in growing[:most]
            if share < _WEIGHED_SHARE
        ]
        if storages_unread:
            self._storages_unread = any(storages_unread)

    def _evaluate(self) -> None:
        levels, cleaned_at = self.evaluator.levels(), self.memory.cleaned_at
        explanation = self.evaluator.evaluate(levels, self._unread())
        if self.evaluator.needs_search:
            self._budget.advance()
        explanation = self.explanations.with_cleanup(explanation, levels.now, self.memory.resident_now)
        if cleaned_at != self.memory.cleaned_at:  # what was read before it no longer holds
            return
        self.evaluator.remember_leaks(explanation, levels.start)
        self.judged_at = time.time()
        self.explanations.add(explanation, self.memory.held, is_final=self._stopped.is_set())
        self._set_schedule(levels, explanation)
        line = self._log_limit.line(explanation, levels.now)
        if line is not None:
            log.log(line.level, "%s", line.text)

    def _unread(self) -> tuple[str, ...]:
        """What could not be read the last time, as other threads might have been changing it."""
        unread = {
            "autograd graphs": self.inventory.lengths.graphs_unread,
            "whole storages of tensors": self._storages_unread,
        }
        return tuple(what for what, is_unread in unread.items() if is_unread)

    def _trace(self) -> bool:
        """Trace allocations for what grows at a line that is not known; whether it was tried.

        Growth that is no leak is traced only where it is fast, as tracing slows the program.
        """
        describer = self.evaluator.describer
        for finding in self.latest.findings[:TYPES_REPORTED]:
            container = self.inventory.known.get(finding.path or "")
            is_slow = not finding.is_leak and self._schedule is CALM
            if is_slow or container is None or finding.share < _TRACED_SHARE:
                continue
            if describer.is_traceable(container) and self.tracer.may_trace(container.path):
                interval = 60 / max(1.0, finding.items_per_minute or 0.0)
                describer.trace(container, self.tracer, interval)
                self.spent_on["trace"] = self.tracer.seconds
                return True
        return False

    def _follow_native(self) -> None:
        """Look for the line that takes memory outside Python, while such memory grows."""
        if self.evaluator.needs_search:
            native = [finding for finding in self.latest.findings if finding.kind == "native"]
            self._rises.step(rate_of(native))

    def _visit_workers(self) -> None:
        if self.program.workers is not None:
            self.program.workers.step(self.evaluator.workers_grow)
