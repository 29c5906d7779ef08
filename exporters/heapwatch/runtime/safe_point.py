"""Runs samplers and cleanups on live objects in the training thread, within a share of its time."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.exclusive_reads import waits_in
from heapwatch.runtime.failures import Failures, must_propagate

log = logging.getLogger("heapwatch")

# Least seconds between samples of live objects, and CPU seconds per second for all samplers together.
DEFAULT_INTERVAL = 5.0
DEFAULT_BUDGET = 0.002
# Costs are averaged over this many samples, so that an expensive one does not delay the next by minutes.
# The sum is divided by `_LEAST_SAMPLES` at least, so that a first sample, which is slow, counts less.
_SPREAD = 16
_LEAST_SAMPLES = 4
# Cost of a second without the processor, in CPU seconds: training waits for a disk or a lock, or the machine
# is busy.
_WAITING_COST = 0.1
# Seconds after which a visit leaves the remaining samples to the next one.
VISIT_SECONDS = 0.005
# Seconds in one sampler after which the log reports that training waits for it.
HANGING_SECONDS = 10.0


@runtime_checkable
class Sampler(Protocol):
    """Reads live objects of the trainer, in the training thread, at a safe point.

    `sample` runs at most every `interval` seconds, and less often if its cost would exceed its share of the
    budget. It stores its result in one attribute, which `collect` reads in the scrape thread. Its exceptions
    are counted; the series must then be absent and not keep their last value.
    """

    name: str
    interval: float

    def sample(self) -> None:
        """Take one sample and keep it for `collect`."""
        ...


class Request:
    """A read that one thread requests and another runs, at most once.

    It must take less than a millisecond, take no lock and call no code of the program. `seconds` is its CPU
    time in the thread that ran it.
    """

    def __init__(self, read: Callable[[], Any], cpu_clock: Callable[[], float] = time.thread_time) -> None:
        self.seconds = 0.0
        self._read = read
        self._cpu_clock = cpu_clock
        self._results: list[Any] = []
        self._done = threading.Lock()
        self._done.acquire(timeout=0)

    def make(self) -> None:
        """Run the read in the calling thread. Raises only errors of the program."""
        began = self._cpu_clock()
        try:
            self._results.append(self._read())
        except BaseException as error:
            if must_propagate(error):
                raise
        finally:
            self.seconds = self._cpu_clock() - began
            self._done.release()

    @waits_in
    def wait(self, seconds: float) -> Any:
        """The result; None if the read failed, or was not run within this time."""
        self._done.acquire(timeout=seconds)
        return self._results[0] if self._results else None


@dataclass(eq=False)
class Task:
    """A sampler and its cost: `total` in CPU seconds, the rest in seconds of the safe point's clock."""

    sampler: Sampler
    anywhere: bool
    due_at: float = float("-inf")
    interval: float = 0.0
    costs: deque[float] = field(default_factory=lambda: deque(maxlen=_SPREAD))
    total: float = 0.0
    sampled_at: float | None = None
    running_since: float | None = None
    failed: bool = False
    said_hanging: bool = False

    @property
    def cost(self) -> float:
        """Average cost of the newest samples, in seconds."""
        return sum(self.costs) / max(len(self.costs), _LEAST_SAMPLES)


class SafePoint:
    """The place in the training loop where samplers and cleanups may touch live objects.

    The training loop reads only `due`, which a daemon thread sets when there is work: a step needs no clock.
    The thread that steps owns the safe point; visits of other threads do nothing while the owner lives.
    Samplers share `budget` fairly: one that costs more than its share runs less often, as `interval` shows.
    The cheapest runs first. A sampler that does not return cannot be interrupted: the training loop waits
    for it, a log line reports it, and `running_since` has the time.

    `blocked` returns whether sampling is unsafe now, such as inside a physics step. With `due_each_tick` a
    visit is due each second: an adapter counts its steps then.

    Args:
        failures: counts what samplers raise.
        budget: share of the time for all samplers together, in CPU seconds a second.
        tick_seconds: how often the daemon thread checks.
        clock: monotonic seconds.
        cpu_clock: CPU seconds of the calling thread.

    """

    def __init__(
        self,
        failures: Failures,
        *,
        budget: float,
        tick_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.steps = 0
        self.due = True
        self.due_each_tick = False
        self.budget = budget
        self.tasks: tuple[Task, ...] = ()
        self.visited_at: float | None = None
        self.blocked: Callable[[], bool] | None = None
        self.on_visit: list[Callable[[], None]] = []
        self.on_tick: list[Callable[[], None]] = []
        self._failures = failures
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._owner: weakref.ref[threading.Thread] | None = None
        self._owner_steps = False
        self._busy = threading.Lock()
        self._stopped = threading.Event()
        self._request: Request | None = None
        self.answering_seconds = 0.0

    def schedule(self, *samplers: Sampler, anywhere: bool = True) -> None:
        """Add samplers; ignores those already added.

        With `anywhere` a scrape may run them in its own thread while no thread owns the safe point.
        """
        scheduled = [task.sampler for task in self.tasks]
        tasks = [
            Task(sampler, anywhere, interval=sampler.interval)
            for sampler in samplers
            if sampler not in scheduled
        ]
        if tasks:
            self.tasks = (*self.tasks, *tasks)
            self.due = True

    def visit(self, *, stepping: bool, at_once: Sampler | None = None) -> None:
        """Run `at_once` and all due samplers, if the calling thread owns the safe point.

        `stepping`: whether a training step calls; a thread that steps replaces one that only visits.
        Raises only errors of the program.
        """
        if not self._is_owner(stepping) or not self._busy.acquire(blocking=False):
            return
        try:
            if self.blocked is not None and self.blocked():
                return
            self.due = False
            self.visited_at = self._clock()
            self._answer()
            for function in self.on_visit:
                function()
            if at_once is not None:
                self.sample_now(at_once)
            self._sample_due()
        except BaseException as error:
            if must_propagate(error):
                raise
            self._failures.record("safe_point", "visit", error)
        finally:
            self._busy.release()

    def stepping_thread(self) -> threading.Thread | None:
        """The live thread whose steps are safe points; None without one."""
        owner = self._owner() if self._owner is not None and self._owner_steps else None
        return owner if owner is not None and owner.is_alive() else None

    def ask(self, read: Callable[[], Any], seconds: float) -> Any:
        """Run `read` at the owner's next visit; None if it failed or no visit came within `seconds`."""
        request = self._request = Request(read, self._cpu_clock)
        self.due = True
        result = request.wait(seconds)
        self._request = None
        return result

    def _answer(self) -> None:
        request, self._request = self._request, None
        if request is None:
            return
        try:
            request.make()
        finally:
            self.answering_seconds += request.seconds

    def wake(self) -> None:
        """Make the next visit check what is due; callable from any thread."""
        self.due = True

    def claim(self) -> None:
        """Make the calling thread the owner."""
        self._owner, self._owner_steps = weakref.ref(threading.current_thread()), True

    def sample_unowned(self) -> None:
        """Run samplers that allow any thread, while no thread owns the safe point yet."""
        if self._owner is not None or not self._busy.acquire(blocking=False):
            return
        try:
            now = self._clock()
            for task in self.tasks:
                if task.anywhere and task.due_at <= now:
                    self._run(task)
        finally:
            self._busy.release()

    def sample_now(self, *samplers: Sampler) -> None:
        """Sample these at once, in the calling thread, which must be at a safe point."""
        for task in self.tasks:
            if task.sampler in samplers:
                self._run(task)

    def prompt(self, sampler: Sampler) -> None:
        """Run a sampler at the next visit, before it is due; callable from any thread."""
        for task in self.tasks:
            if task.sampler is sampler:
                task.due_at = float("-inf")
        self.due = True

    def failed(self, collector: object) -> bool:
        """Whether the last sample of this collector failed."""
        return any(task.failed for task in self.tasks if task.sampler is collector)

    def seconds_since_visit(self) -> float | None:
        """Seconds since the owner's last visit; None before the first."""
        return None if self.visited_at is None else self._clock() - self.visited_at

    def start(self) -> None:
        """Start the daemon thread that sets `due`."""
        threading.Thread(target=self._tick_until_stopped, name="heapwatch-ticker", daemon=True).start()

    def stop(self) -> None:
        """End the daemon thread; nothing is due any more."""
        self._stopped.set()
        self.due, self.due_each_tick, self.tasks, self.on_visit = False, False, (), []

    def abandon(self) -> None:
        """Stop in a forked child, which has no daemon thread and may have locked locks."""
        self._stopped = threading.Event()
        self.stop()

    def tick(self) -> None:
        """Check once: set `due` if a sampler is due, and log samplers that hang."""
        allow_capture()
        now = self._clock()
        for function in self.on_tick:
            function()
        if self.due_each_tick:
            self.due = True
        for task in self.tasks:
            if task.due_at <= now:
                self.due = True
            running_since = task.running_since
            if running_since is not None and now - running_since > HANGING_SECONDS and not task.said_hanging:
                task.said_hanging = True
                log.warning(
                    "%s: a sample has run for %.0f s and cannot be interrupted; training waits for it",
                    task.sampler.name,
                    now - running_since,
                )

    def _tick_until_stopped(self) -> None:
        while not self._stopped.wait(self._tick_seconds):
            try:
                self.tick()
            except BaseException as error:
                self._failures.record("safe_point", "tick", error)

    def _is_owner(self, stepping: bool) -> bool:
        """Whether the calling thread owns the safe point; it replaces one that ended or never stepped."""
        current = threading.current_thread()
        owner = self._owner() if self._owner is not None else None
        if owner is current:
            self._owner_steps = self._owner_steps or stepping
            return True
        if owner is not None and owner.is_alive() and (self._owner_steps or not stepping):
            return False
        self._owner, self._owner_steps = weakref.ref(current), stepping
        return True

    def _sample_due(self) -> None:
        began = self._clock()
        waiting = sorted((task for task in self.tasks if task.due_at <= began), key=lambda task: task.cost)
        for position, task in enumerate(waiting):
            if position and self._clock() - began >= VISIT_SECONDS:
                self.due = True
                return
            self._run(task)

    def _run(self, task: Task) -> None:
        began = task.running_since = self._clock()
        cpu_began = self._cpu_clock()
        try:
            task.sampler.sample()
            task.failed = False
            task.sampled_at = self._clock()
        except BaseException as error:
            task.failed = True
            if must_propagate(error):
                raise
            self._failures.record(task.sampler.name, "sample", error)
        finally:
            task.running_since = None
            task.said_hanging = False
            wall_seconds, cpu_seconds = self._clock() - began, self._cpu_clock() - cpu_began
            task.total += cpu_seconds
            task.costs.append(cpu_seconds + _WAITING_COST * max(0.0, wall_seconds - cpu_seconds))
            share = fair_share(self.budget, (other.cost / other.sampler.interval for other in self.tasks))
            task.interval = max(task.sampler.interval, task.cost / share)
            task.due_at = began + task.interval


def fair_share(budget: float, shares: Iterable[float]) -> float:
    """The largest share for one sampler after smaller demands are met in full.

    Max-min fairness: D. Bertsekas and R. Gallager, Data Networks (1992), section 6.5.2.
    """
    remaining = budget
    ascending = sorted(shares)
    for position, share in enumerate(ascending):
        fair = remaining / (len(ascending) - position)
        if share > fair:
            return fair
        remaining -= share
    return budget
