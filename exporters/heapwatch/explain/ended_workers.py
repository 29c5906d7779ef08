"""Worker processes that end while they are watched: how, for the log and for the explanation."""

from __future__ import annotations

import logging
import resource
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from heapwatch.explain.findings import EndedWorkers
from heapwatch.explain.workers import WorkerVisits
from heapwatch.measure.process.ended import (
    NO_DEATHS,
    Ending,
    close,
    ending,
    is_of,
    opened,
    ready,
    several_ended,
)

log = logging.getLogger("heapwatch")

_MOST_DESCRIPTORS = 256
# No more are opened when so many files are open: the program may need them, and `select()` takes 1024.
_CROWDED, _SELECTABLE = 0.75, 1024
_IN_VISIT = "during a visit of Heapwatch or right after it"
_MOST_KINDS = 5
_MOST_NAMED = 8
_REPEATED_SECONDS = 600.0  # for a program whose commands end with an error again and again
_WAIT_SECONDS = 0.5


class WorkerEnds:
    """Follows the workers that were seen alive, each by a file descriptor, as long as few files are open.

    No thread waits for the end of one: where the kernel forgets the status with the zombie (before Linux
    6.15), a parent that waits is nearly always faster.

    Args:
        visits: knows which worker is entered, and enters no other when one died of it.
        clock: monotonic seconds.

    """

    def __init__(self, visits: WorkerVisits, clock: Callable[[], float] = time.monotonic) -> None:
        self._visits = visits
        self._clock = clock
        self._descriptors: dict[int, int] = {}
        self._counts: Counter[Ending] = Counter()
        self._unsaid: Counter[Ending] = Counter()
        self._named: defaultdict[Ending, list[int]] = defaultdict(list)
        self._visited: list[tuple[int, Ending]] = []
        self._told = 0
        self._due: dict[Ending, float] = {}
        self._closed = False
        self._lock = threading.Lock()

    def saw(self, sizes: Mapping[int, int | None]) -> None:
        """Follow the child processes of a reading; the size is None for a zombie."""
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            return
        try:
            for pid, size in () if self._closed else sizes.items():
                if size is not None and pid not in self._descriptors:
                    self._follow(pid)
        finally:
            self._lock.release()

    def step(self) -> bool:
        """Log how workers have ended since the last step; returns whether any have."""
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            return False
        try:
            pids = {descriptor: pid for pid, descriptor in self._descriptors.items()}
            for descriptor in ready(pids):
                self._end(pids[descriptor], descriptor)
            before, self._told = self._told, self._counts.total()
            lines = list(self._lines(self._clock()))
        finally:
            self._lock.release()
        for level, text in lines:
            log.log(level, "%s", text)
        return self._told > before

    def so_far(self) -> tuple[EndedWorkers, ...]:
        """Those that did not end by themselves: a few ways of ending, first those of which workers died."""
        counts: Counter[str] = Counter()
        for ended, count in list(self._counts.items()):
            counts[ended.how] += count
        order = sorted(counts, key=lambda how: (how in NO_DEATHS, -counts[how]))
        return tuple(EndedWorkers(how, counts[how]) for how in order[:_MOST_KINDS])

    def close(self) -> None:
        """Follow nothing any more; what is known stays."""
        if self._lock.acquire(timeout=_WAIT_SECONDS):
            try:
                self._forget()
            finally:
                self._lock.release()

    def abandon(self) -> None:
        """In a forked child: the workers are the parent's."""
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._closed = True
        for pid, descriptor in self._descriptors.items():
            close(descriptor, pid)
        self._descriptors = {}

    def _follow(self, pid: int) -> None:
        descriptor = opened(pid) if len(self._descriptors) < _MOST_DESCRIPTORS else None
        if descriptor is not None and descriptor >= _CROWDED * min(_SELECTABLE, _most_files()):
            close(descriptor, pid)
        elif descriptor is not None:
            self._descriptors[pid] = descriptor

    def _end(self, pid: int, descriptor: int) -> None:
        del self._descriptors[pid]
        if is_of(descriptor, pid):  # the program may have closed it
            self._note(pid, ending(pid, descriptor))
            close(descriptor, pid)

    def _note(self, pid: int, ended: Ending) -> None:
        if ended.code == 0:
            return
        self._counts[ended] += 1
        if self._visits.is_visited(pid):
            self._visited.append((pid, ended))
            return
        self._unsaid[ended] += 1
        if len(self._named[ended]) < _MOST_NAMED:
            self._named[ended].append(pid)

    def _lines(self, now: float) -> Iterator[tuple[int, str]]:
        """Levels and texts for the log: one for each way of ending, unless it was said not long ago."""
        for pid, ended in self._visited:
            text = f"worker process {pid} {ended.said(_IN_VISIT)}"
            if _level(ended) == logging.WARNING:
                self._visits.give_up()
                text += "; no other worker is entered"
            yield _level(ended), text
        self._visited.clear()
        for ended in [one for one in self._unsaid if now >= self._due.get(one, now)]:
            self._due[ended] = now + _REPEATED_SECONDS
            count, pids = self._unsaid.pop(ended), self._named.pop(ended)
            named = ", ".join([*map(str, pids), *(["..."] if count > len(pids) else [])])
            yield _level(ended), f"{several_ended(count, ended.how)}: {named}"


def _level(ended: Ending) -> int:
    return logging.INFO if ended.how in NO_DEATHS else logging.WARNING


def _most_files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _SELECTABLE if soft == resource.RLIM_INFINITY else soft
