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

from heapwatch import data
from heapwatch.explain.findings import Explanation
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.machine.groups import Groups, Member
from heapwatch.machine.workers import Representative, grown_most, with_names, worker_sizes
from heapwatch.measure.process.ended import ASKED_TO_END, close_pidfd, ended_among, ending_of, open_pidfd
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


# Loaded now: a forked child must not.
_prctl = getattr(ctypes.PyDLL(None), "prctl", None) if sys.platform == "linux" else None


def command_for(pid: int) -> list[str]:
    """The command that explains a process as JSON; it finds the packages where this process has them."""
    folders = [str(folder.parent) for folder in data.packages().values()]
    code = f"import sys; sys.path += {folders!a}; from {VISITOR} import main; sys.exit(main())"
    return [sys.executable, "-I", "-c", code, "explain", str(pid), "--json", f"--seconds={STAY_SECONDS:.0f}"]


class _Visit:
    """A command that enters a worker. It writes to files: a pipe that nobody empties would stop it."""

    def __init__(self, command: list[str], worker: Representative, deadline: float) -> None:
        self.worker = worker
        self.deadline = deadline
        self.is_asked_to_end = False
        self._output, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self.command = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._errors
        )
        self._worker_end = open_pidfd(worker.pid)

    def texts(self) -> tuple[str, str]:
        """What the command has written to stdout and to stderr."""
        for file in (self._output, self._errors):
            file.seek(0)
        output, errors = (file.read(MOST_BYTES) for file in (self._output, self._errors))
        return output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")

    def death(self) -> str:
        """How the worker has died, in words, if that may be because of the visit; else empty."""
        if self._worker_end is None or not ended_among([self._worker_end]):
            return ""
        ended = ending_of(self.worker.pid, self._worker_end)
        # No visit sends SIGKILL: it is the kernel out of memory, or whoever manages the workers.
        if not ended.is_failure or ended.how in (*ASKED_TO_END, "SIGKILL"):
            return ""
        return ended.said("during a visit of Heapwatch")

    def end(self) -> None:
        """End the command: it leaves the worker, and if it is killed, the worker leaves by itself."""
        if self.command.poll() is None:
            for stop in (self.command.terminate, self.command.kill):
                stop()
                with suppress(subprocess.TimeoutExpired):
                    self.command.wait(_LEAVING_SECONDS)
                    break
        self.close()

    def close(self) -> None:
        """Close all files."""
        self._output.close()
        self._errors.close()
        if self._worker_end is not None:
            close_pidfd(self._worker_end, self.worker.pid)


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
        self._visit: _Visit | None = None
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
        visit, self._visit = self._visit, None
        if visit is not None:
            visit.close()

    def stop(self) -> None:
        """End a visit."""
        visit, self._visit = self._visit, None
        if visit is not None:
            visit.end()

    def _step(self, grows: bool) -> None:
        now = self._clock()
        if self._visit is not None:
            self._take(self._visit, now)
        elif not grows:
            self._before = None
            self._inside.clear()
        elif self._may_begin and not self._is_enough(now):
            if self._before is None:
                self._before = now, self._due_sizes(now)
            elif now >= self._before[0] + COMPARED_SECONDS:
                before, after = self._before[1], self._due_sizes(now)
                self._before = None
                worker = grown_most(before, after)
                if worker is not None:
                    deadline = now + STAY_SECONDS + _ENDING_SECONDS
                    self._visit = _Visit(self._command_for(worker.pid), worker, deadline)
                    self.visits += 1
                    self._begun.append(now)

    def _due_sizes(self, now: float) -> dict[Member, int]:
        """The sizes of those whose group was not visited lately."""
        return {
            member: size for member, size in self._sizes().items() if now >= self._next.get(member.group, now)
        }

    def _is_enough(self, now: float) -> bool:
        return len(self._begun) == _MOST_VISITS and now < self._begun[0] + _DAY_SECONDS

    def _take(self, visit: _Visit, now: float) -> None:
        """End the visit if its command has ended or takes too long, and keep what it has found."""
        code, group = visit.command.poll(), visit.worker.group
        if code is None and now < visit.deadline:
            return
        if code is None and not visit.is_asked_to_end:
            visit.command.terminate()
            visit.is_asked_to_end, visit.deadline = True, now + _LAST_SECONDS
            return
        output, errors = visit.texts()
        if death := visit.death():
            self._may_begin = False
            log.warning(
                "heapwatch: worker process %d %s; no other worker is entered", visit.worker.pid, death
            )
        self.stop()
        self._next[group] = now + _AGAIN_SECONDS
        if not output:
            ended = "took too long" if code is None else f"ended with {code}"
            why = errors.strip().rpartition("\n")[2] or f"the command {ended}"
            log.info("heapwatch: cannot find what grows in the workers: %s", why.removeprefix("heapwatch: "))
            return
        inside = explanation_of(json.loads(output))
        if any(finding.path for finding in inside.findings):
            self._inside[group] = inside, visit.worker
            self._next[group] = now + _RENEWED_SECONDS
