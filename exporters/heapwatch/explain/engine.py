"""The thread that watches what grows, within its share of the time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from heapwatch.explain.describe import describe
from heapwatch.explain.findings import Explanation, message
from heapwatch.explain.inventory import Inventory, Known
from heapwatch.explain.judge import Candidate, Levels, explain
from heapwatch.explain.series import Series
from heapwatch.explain.weigh import weigh
from heapwatch.measure.resident_memory import ResidentMemory, memory_limit
from heapwatch.measure.roots import OWN_THREADS, Root

log = logging.getLogger("heapwatch")

SLICE_SECONDS = 0.001
SHARE = 0.002
# CPU seconds that may be spent ahead, so that the first minutes see enough: of an hour's allowance.
ADVANCE_SECONDS = 1.5
_REPAID_SECONDS = 3600.0
_ADVANCE_SHARE = 0.05  # of the time, while the advance lasts
_TICK_SECONDS = 0.1
_JUDGE_SECONDS = 5.0
_WEIGH_SECONDS = 5.0
_ROUND_SECONDS = 15.0
_MOST_WEIGHED = 40


class Explainer:
    """Finds what grows and keeps the latest explanation.

    Everything runs in a daemon thread of its own, in slices of about a millisecond; what they may take
    together is `share` of the time, with an advance for the first minutes that is paid back within the hour.

    Args:
        share: of the time.
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.
        extra_roots: further roots for the walk.

    """

    def __init__(
        self,
        *,
        share: float = SHARE,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
        extra_roots: Callable[[], list[Root]] = list,
    ) -> None:
        self.inventory = Inventory(clock, spent, extra_roots)
        self.latest = Explanation("too early", 0.0, 0.0, 0.0)
        self.spent_seconds = 0.0
        self.spent_on = dict.fromkeys(("read", "walk", "weigh", "judge"), 0.0)
        self.longest_slice = 0.0
        self._share = share
        self._clock = clock
        self._spent = spent
        self._memory = ResidentMemory()
        self._resident = Series()
        self._limit = memory_limit()
        self._began = clock()
        self._allowance = ADVANCE_SECONDS
        self._credited = self._began
        self._weighed_at = self._judged_at = self._began
        self._next_round = self._began
        self._walking = False
        self._stopped = threading.Event()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch from now on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"{OWN_THREADS}explain", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Watch no more; the latest explanation stays."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def abandon(self) -> None:
        """In a forked child: the thread is the parent's."""
        self._stopped.set()
        self._thread = None
        self._working = threading.Lock()

    def explain_now(self) -> Explanation:
        """Read everything once more and judge it, in the calling thread."""
        with self._working:
            for known in list(self.inventory.known.values()):
                known.due = 0.0
            self.inventory.read(0.5)
            self._resident.add(self._clock(), self._memory.read())
            self._weigh(_MOST_WEIGHED, fresh=True)
            return self._judge()

    def tick(self) -> None:
        """One slice of whatever is due."""
        now = self._clock()
        if now - self._resident.read_at >= 0.5:
            self._resident.add(now, self._memory.read())
        if not self._may_spend(now):
            return
        began, activity = self._spent(), "read"
        if now - self._judged_at >= _JUDGE_SECONDS:
            self._judged_at, activity = now, "judge"
            self._judge()
        elif now - self._weighed_at >= _WEIGH_SECONDS:
            self._weighed_at, activity = now, "weigh"
            self._weigh(3)
        elif not self.inventory.read(SLICE_SECONDS) and (self._walking or now >= self._next_round):
            activity = "walk"
            self._walking = not self.inventory.discover(SLICE_SECONDS)
            if not self._walking:
                self._next_round = now + min(_ROUND_SECONDS, 2.0 * 2**self.inventory.rounds)
        cost = self._spent() - began
        self.spent_on[activity] += cost
        self._allowance -= cost
        self.spent_seconds += cost
        self.longest_slice = max(self.longest_slice, cost)

    def _work(self) -> None:
        while not self._stopped.wait(_TICK_SECONDS if self._allowance < ADVANCE_SECONDS / 4 else 0.02):
            try:
                with self._working:
                    self.tick()
            except Exception:
                log.debug("heapwatch: a slice of the inventory failed", exc_info=True)

    def _may_spend(self, now: float) -> bool:
        """Whether the allowance lasts for another slice; it grows with time, and is bounded."""
        elapsed = now - self._credited
        self._credited = now
        repay = ADVANCE_SECONDS / _REPAID_SECONDS if now - self._began < _REPAID_SECONDS else 0.0
        self._allowance = min(ADVANCE_SECONDS, self._allowance + elapsed * (self._share - repay))
        ahead = self.spent_seconds > 0.01 + _ADVANCE_SHARE * (now - self._began)
        return self._allowance > 0 and not ahead

    def _weigh(self, most: int, *, fresh: bool = False) -> None:
        """Measure the bytes of what grows: what was measured longest ago, and has grown since, first."""
        now = self._clock()
        start = self._levels(now).start
        growing = [
            known
            for known in list(self.inventory.known.values())
            if known.items.growth(start).total > 0
            and (known.items.last or 0.0) > known.weighed_items * (1.0 if fresh else 1.1)
        ]
        growing.sort(key=lambda known: known.held.read_at)
        for known in growing[:most]:
            weigh(known, self.inventory, now)

    def _judge(self) -> Explanation:
        now = self._clock()
        levels = self._levels(now)
        candidates: list[Candidate] = []
        for known in list(self.inventory.known.values()):
            growth = known.items.growth(levels.start)
            if growth.total > 0 and growth.steps > 2:
                candidates.append(self._describe(known, levels))
        before = self.latest.verdict
        self.latest = explain(levels, candidates, rounds=self.inventory.rounds)
        if self.latest.verdict != before:
            log.log(
                logging.WARNING if self.latest.verdict == "leak" else logging.INFO, "%s", message(self.latest)
            )
        return self.latest

    def _describe(self, known: Known, levels: Levels) -> Candidate:
        return describe(known, known.items.growth(levels.start), self.inventory)

    def _levels(self, now: float) -> Levels:
        return Levels(self._resident, self._limit, self._began, now)
