"""Visits of processes: enters one, reads its explanation until the verdict is certain, and leaves it."""

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
_SILENCE_SECONDS = 90.0  # a program may hold the interpreter's lock for long, or a verdict be overdue
_DURING, _AFTER = "during the visit", "right after the visit"


def begin_explaining(entered: EnteredProcess, name: str) -> None:
    """Make the process compute explanations until the visit ends; CannotEnter if its explainer is off."""
    if not entered.ask("explain", name=name).get("enabled", True):
        raise CannotEnter(f"process {entered.pid} has HEAPWATCH_EXPLAIN=off in its environment")


class Visits:
    """Visits processes one after the other.

    Attributes:
        has_died: whether a process died during its visit or right after it.
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
                explanation = self._explained(entered, followed, name, seconds)
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
            message = followed.said(ended, _AFTER if has_left else _DURING)
            if explanation is None:
                raise Ended(message, ended)
            say(message, error=True)
        if explanation is None:
            raise CannotEnter(f"process {pid} has sent no explanation")
        return explanation

    def _explained(
        self, entered: EnteredProcess, followed: Followed, name: str, seconds: float
    ) -> Explanation | None:
        deadline = time.monotonic() + seconds
        try:
            begin_explaining(entered, name)
        except KeyboardInterrupt:
            raise CannotEnter(f"process {entered.pid} has sent no explanation") from None
        try:
            say(f"process {entered.pid} ({name}) is entered, for {seconds:.0f} s at most", error=True)
            return _first_certain_explanation(entered, followed, deadline)
        except KeyboardInterrupt:
            self.is_interrupted = True
            return _latest(entered)


def _first_certain_explanation(
    entered: EnteredProcess, followed: Followed, deadline: float
) -> Explanation | None:
    """Return the first certain explanation, else the last one before the deadline or the process's end."""
    explanation, received_at, printed, printed_at = None, time.monotonic(), "", time.monotonic()
    has_ended = False
    while True:
        latest, now = _latest(entered), time.monotonic()
        if latest is not None and latest != explanation:
            explanation, received_at = latest, now
            if explanation.verdict not in _UNCERTAIN or _grows_in_workers(explanation):
                return explanation
            line = headline(explanation)
            if now - printed_at >= _PRINTED_SECONDS and line != printed:
                say(line, error=True)
                printed, printed_at = line, now
        if has_ended or now >= deadline or now - received_at > _SILENCE_SECONDS:
            return explanation
        has_ended = followed.ended_within(_EVERY_SECONDS) is not None


def _grows_in_workers(explanation: Explanation) -> bool:
    """Whether its workers grow: then entering one of them gives an earlier and better result."""
    finding = foremost(explanation)
    return finding is not None and finding.kind == "worker" and explanation.seconds >= _WORKERS_SECONDS


def _latest(entered: EnteredProcess) -> Explanation | None:
    document = entered.latest(EXPLANATION)
    if document is None:
        return None
    try:
        return explanation_of(document)
    except ValueError as error:
        raise CannotEnter(f"process {entered.pid} sends no explanation: {error}") from None
