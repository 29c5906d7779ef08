"""What grows in worker processes: one of equal ones is entered and explained by a command of its own."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from heapwatch.explain.findings import Explanation
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.machine.groups import Groups, Member
from heapwatch.machine.workers import Representative, grown_most, with_names, worker_sizes
from heapwatch.measure.process.ended import ASKED_TO_END, close, ending, opened, ready
from heapwatch.measure.process.process_tree import VISITOR
from heapwatch.runtime import environment
from heapwatch.runtime.failures import raised

log = logging.getLogger("heapwatch")

COMPARED_SECONDS = 20.0
STAY_SECONDS = 120.0
_AGAIN_SECONDS, _RENEWED_SECONDS = 300.0, 1800.0  # after a visit without a name, and with one
_ENDING_SECONDS = 60.0  # that the command takes beside its stay: to enter, and to leave
_LAST_SECONDS = 30.0  # after SIGTERM, for the command to leave the worker and print its result
_LEAVING_SECONDS = 0.7
_MOST_VISITS, _DAY_SECONDS = 12, 86400.0
_PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
_PACKAGES = ("heapwatch", "psutil", "prometheus_client")


# Loaded now: a forked child must not.
_prctl = getattr(ctypes.PyDLL(None), "prctl", None) if sys.platform == "linux" else None


def command_for(pid: int) -> list[str]:
    """The command that explains a process as JSON; it finds the packages where this process has them."""
    specs = (find_spec(name) for name in _PACKAGES)
    folders = [str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin]
    code = f"import sys; sys.path += {folders!a}; from {VISITOR} import main; sys.exit(main())"
    return [sys.executable, "-I", "-c", code, "explain", str(pid), "--json", f"--seconds={STAY_SECONDS:.0f}"]


class WorkerVisits:
    """Visits in steps that do not wait: call `step` every few seconds, always from one thread.

    Attributes:
        visits: number of visits so far.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sizes: Callable[[], dict[Member, int]] | None = None,
        command_for: Callable[[int], list[str]] = command_for,
    ) -> None:
        self.enabled = environment.is_on(environment.WORKERS)
        self.visits = 0
        self._clock = clock
        self._sizes = sizes or partial(worker_sizes, Groups(everyone=True))
        self._command_for = command_for
        self._next: dict[str, float] = {}  # by group
        self._before: tuple[float, dict[Member, int]] | None = None
        self._visitor: subprocess.Popen[bytes] | None = None
        self._until = self._last = 0.0
        self._said: IO[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._worker = Representative(0, 0, 0)
        self._descriptor: int | None = None  # of the worker, which tells its end
        self._may_begin = True
        self._inside: dict[str, tuple[Explanation, Representative]] = {}
        self._begun: deque[float] = deque(maxlen=_MOST_VISITS)

    def step(self, grows: bool) -> None:
        """Begin a visit if the workers grow and one is due, or take what it has found."""
        try:
            if self.enabled:
                self._step(grows)
        except Exception as error:
            self.enabled = False
            self.stop()
            log.warning("heapwatch: the search for what grows in workers has ended: %s", raised(error))

    def with_names(self, explanation: Explanation) -> Explanation:
        """The explanation with what the last visits have found, while the workers grow."""
        for inside, entered in self._inside.values():
            explanation = with_names(explanation, inside, entered)
        return explanation

    def inside(self, group: str) -> tuple[Explanation, Representative] | None:
        """What the last visit of a process of this group has found, and which one that was."""
        return self._inside.get(group)

    def abandon(self) -> None:
        """In a forked child: the visitor belongs to the parent, and may enter this process.

        Where the kernel lets a process be looked into by its ancestors only (Yama), that has to be said.
        """
        if self.enabled and _prctl is not None:
            _prctl(_PR_SET_PTRACER, os.getppid(), 0, 0, 0)
        self.enabled = False
        self._visitor = self._said = self._errors = None
        self._close_descriptor()

    def stop(self) -> None:
        """End a visit: the command leaves the worker; where it is killed, the worker leaves by itself."""
        visitor, self._visitor = self._visitor, None
        if visitor is not None and visitor.poll() is None:
            for end in (visitor.terminate, visitor.kill):
                end()
                with suppress(subprocess.TimeoutExpired):
                    visitor.wait(_LEAVING_SECONDS)
                    break
        for file in (self._said, self._errors):
            if file is not None:
                file.close()
        self._said = self._errors = None
        self._close_descriptor()

    def _step(self, grows: bool) -> None:
        now = self._clock()
        if self._visitor is not None:
            self._take(self._visitor, now)
        elif not grows:
            self._before = None
            self._inside.clear()
        elif self._may_begin and not self._is_enough(now):
            if self._before is None:
                self._before = now, self._due_sizes(now)
            elif now >= self._before[0] + COMPARED_SECONDS:
                before, after = self._before[1], self._due_sizes(now)
                self._before = None
                first = grown_most(before, after)
                if first is not None:
                    self._begin(first, now)

    def _due_sizes(self, now: float) -> dict[Member, int]:
        """The sizes of those whose group was not visited lately."""
        return {
            member: size for member, size in self._sizes().items() if now >= self._next.get(member.group, now)
        }

    def _is_enough(self, now: float) -> bool:
        return len(self._begun) == _MOST_VISITS and now < self._begun[0] + _DAY_SECONDS

    def _begin(self, worker: Representative, now: float) -> None:
        # To files: a pipe that nobody empties would stop it.
        self._said, self._errors = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self._visitor = subprocess.Popen(
            self._command_for(worker.pid), stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._errors
        )
        self.visits += 1
        self._begun.append(now)
        self._descriptor = opened(worker.pid)
        self._worker, self._until = worker, now + STAY_SECONDS + _ENDING_SECONDS
        self._last = float("inf")

    def _check_worker(self) -> None:
        """Begin no further visit if the worker may have died of this one."""
        pid = self._worker.pid
        if self._descriptor is None or not ready([self._descriptor]):
            return
        ended = ending(pid, self._descriptor)
        # No visit sends SIGKILL: it is the kernel out of memory, or whoever manages the workers.
        if ended.is_failure and ended.how not in (*ASKED_TO_END, "SIGKILL"):
            self._may_begin = False
            said = ended.said("during a visit of Heapwatch")
            log.warning("heapwatch: worker process %d %s; no other worker is entered", pid, said)

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            close(self._descriptor, self._worker.pid)
        self._descriptor = None

    def _take(self, visitor: subprocess.Popen[bytes], now: float) -> None:
        if visitor.poll() is None and now < self._last:
            if now >= self._until and self._last == float("inf"):
                visitor.terminate()
                self._last = now + _LAST_SECONDS
            return
        ended = "took too long" if visitor.poll() is None else f"ended with {visitor.returncode}"
        said, errors = _text(self._said), _text(self._errors)
        self._check_worker()
        self.stop()
        self._next[self._worker.group] = now + _AGAIN_SECONDS
        if not said:
            why = errors.strip().rpartition("\n")[2] or f"the command {ended}"
            log.info("heapwatch: cannot find what grows in the workers: %s", why.removeprefix("heapwatch: "))
            return
        inside = explanation_of(json.loads(said))
        if any(one.path for one in inside.findings):
            self._inside[self._worker.group] = inside, self._worker
            self._next[self._worker.group] = now + _RENEWED_SECONDS


def _text(file: IO[bytes] | None) -> str:
    if file is None:
        return ""
    file.seek(0)
    return file.read(MOST_BYTES).decode("utf-8", "replace")
