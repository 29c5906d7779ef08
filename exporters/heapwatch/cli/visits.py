"""Visits of processes: entering one, explaining it until its verdict is certain, and leaving it."""

from __future__ import annotations

import signal
import time

from heapwatch.cli.followed import DIED, SOON_SECONDS, Ended, Followed
from heapwatch.entering.agent import EXPLANATION
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess, process_of
from heapwatch.explain.findings import Explanation, foremost, headline
from heapwatch.explain.received import explanation_of
from heapwatch.measure.process.other_process import name_of
from heapwatch.text.terminal import say

_UNCERTAIN = ("too early", "growing")
_EVERY_SECONDS = 1.0
_PRINTED_SECONDS = 10.0
_WORKERS_SECONDS = 60.0
_SILENT_SECONDS = 90.0  # a program may hold the interpreter's lock for long, or a verdict be overdue
_DURING, _AFTER = "during the visit", "right after the visit"


def begin_explaining(entered: EnteredProcess, name: str) -> None:
    """Make the process compute its explanation until it is left; CannotEnter if its explainer is off."""
    if not entered.ask("explain", name=name).get("enabled", True):
        raise CannotEnter(f"process {entered.pid} has HEAPWATCH_EXPLAIN=off in its environment")


class Visits:
    """Visits of processes, one after the other.

    Attributes:
        has_died: whether one of them died meanwhile or right after that.
        is_interrupted: whether Ctrl-C or SIGTERM ended a visit.

    """

    def __init__(self) -> None:
        self.has_died = False
        self.is_interrupted = False
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def explain(self, pid: int, seconds: float) -> Explanation:
        """Enter, explain and leave a process.

        Raises:
            CannotEnter, Ended: there is no explanation.

        """
        process = process_of(pid)
        name = name_of(process)
        with EnteredProcess(pid) as entered, Followed(process, name) as followed:
            try:
                found = self._explained(entered, followed, name, seconds)
            except CannotEnter:
                if (end := followed.end(_DURING)) and end.exit_code == DIED:
                    self.has_died = True
                    raise end from None
                raise
            has_left = entered.leave()
            ended = followed.ended_within(SOON_SECONDS)
        if ended is None:
            say(
                f"process {pid} {'is left' if has_left else 'has not confirmed yet that it is left'}",
                error=True,
            )
        else:
            self.has_died |= ended.is_failure
            said = followed.said(ended, _AFTER if has_left else _DURING)
            if found is None:
                raise Ended(said, ended)
            say(said, error=True)
        if found is None:
            raise CannotEnter(f"process {pid} has sent no explanation")
        return found

    def _explained(
        self, entered: EnteredProcess, followed: Followed, name: str, seconds: float
    ) -> Explanation | None:
        until = time.monotonic() + seconds
        try:
            begin_explaining(entered, name)
        except KeyboardInterrupt:
            raise CannotEnter(f"process {entered.pid} has sent no explanation") from None
        try:
            say(f"process {entered.pid} ({name}) is entered, for {seconds:.0f} s at most", error=True)
            return _watch(entered, followed, until)
        except KeyboardInterrupt:
            self.is_interrupted = True
            return _latest(entered)


def _watch(entered: EnteredProcess, followed: Followed, until: float) -> Explanation | None:
    """The first certain explanation, else the last one before the process ends or the time is up."""
    found, seen_at, printed, printed_at = None, time.monotonic(), "", time.monotonic()
    has_ended = False
    while True:
        latest, now = _latest(entered), time.monotonic()
        if latest is not None and latest != found:
            found, seen_at = latest, now
            if found.verdict not in _UNCERTAIN or _is_of_workers(found):
                return found
            line = headline(found)
            if now - printed_at >= _PRINTED_SECONDS and line != printed:
                say(line, error=True)
                printed, printed_at = line, now
        if has_ended or now >= until or now - seen_at > _SILENT_SECONDS:
            return found
        has_ended = followed.ended_within(_EVERY_SECONDS) is not None


def _is_of_workers(found: Explanation) -> bool:
    """Whether the growth is that of its workers: entering one of them gives an earlier and better result."""
    first = foremost(found)
    return first is not None and first.kind == "worker" and found.seconds >= _WORKERS_SECONDS


def _latest(entered: EnteredProcess) -> Explanation | None:
    document = entered.latest(EXPLANATION)
    if document is None:
        return None
    try:
        return explanation_of(document)
    except ValueError as error:
        raise CannotEnter(f"process {entered.pid} sends no explanation: {error}") from None
