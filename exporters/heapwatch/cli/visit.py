"""Enters a process for its explanation and leaves it; then, if workers grow, one of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psutil

from heapwatch.attach import CannotAttach, name_of, process_of
from heapwatch.entering.agent import EXPLANATION
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.explain.findings import Explanation, foremost, headline
from heapwatch.explain.received import explanation_of
from heapwatch.explain.workers import Worker, grown_most, grows_in_workers, with_names
from heapwatch.runtime.plain_text import say

DEFAULT_SECONDS = 300.0
_UNCERTAIN = ("too early", "growing")
_EVERY_SECONDS = 1.0
_PRINTED_SECONDS = 10.0
_WORKERS_SECONDS = 60.0
_LEAST_SECONDS = 60.0  # for a worker: a verdict takes less
_SILENT_SECONDS = 30.0  # a program may hold the interpreter's lock for long


def visit(pid: int, seconds: float = DEFAULT_SECONDS, *, quiet: bool = False) -> Explanation:
    """Enter a process, explain it and leave it; if its workers grow, do the same with one of them.

    Args:
        pid: the process.
        seconds: the longest stay.
        quiet: whether to print nothing meanwhile.

    Raises:
        CannotAttach: there is no such process, or this user may not access it.
        CannotEnter: it cannot be entered, or ended before anything was known.

    """
    children, until = _children_of(pid), time.monotonic() + seconds
    found = _visit_one(pid, seconds, quiet=quiet)

    def visit_worker(worker: int) -> Explanation:
        return _visit_one(worker, max(_LEAST_SECONDS, until - time.monotonic()), quiet=quiet)

    return with_workers(found, children, _children_of(pid), visit_worker)


def begin_explaining(entered: EnteredProcess, name: str) -> None:
    """Make the process compute its explanation until it is left.

    Raises:
        CannotEnter: it cannot be entered, or its explainer is off.

    """
    if not entered.ask("explain", name=name).get("enabled", True):
        raise CannotEnter(f"process {entered.pid} has HEAPWATCH_EXPLAIN=off in its environment")


def _visit_one(pid: int, seconds: float, *, quiet: bool) -> Explanation:
    name = name_of(process_of(pid))
    with EnteredProcess(pid) as entered:
        began = time.monotonic()
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            begin_explaining(entered, name)
            if not quiet:
                say(f"process {pid} ({name}) is entered, for {seconds:.0f} s at most", error=True)
            found = _watch(entered, began + seconds, quiet=quiet)
        except KeyboardInterrupt:
            found = _latest(entered)
        if found is None:
            ended = "" if entered.is_alive() else ": it has ended"
            raise CannotEnter(f"process {pid} has sent no explanation{ended}")
    if not quiet:
        say(f"process {pid} is left", error=True)
    return found


def _watch(entered: EnteredProcess, until: float, *, quiet: bool) -> Explanation | None:
    """The first certain explanation, else the last one before the process ends or the time is up."""
    found, seen_at, printed, printed_at = None, time.monotonic(), "", time.monotonic()
    while True:
        latest, now = _latest(entered), time.monotonic()
        if latest is not None and latest != found:
            found, seen_at = latest, now
            if found.verdict not in _UNCERTAIN or _is_of_workers(found):
                return found
            line = headline(found)
            if not quiet and now - printed_at >= _PRINTED_SECONDS and line != printed:
                say(line, error=True)
                printed, printed_at = line, now
        if now >= until or now - seen_at > _SILENT_SECONDS or not entered.is_alive():
            return found
        time.sleep(_EVERY_SECONDS)


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


class Child(NamedTuple):
    """A child process: its id, and when it began in seconds since the epoch."""

    pid: int
    began: float


def _children_of(pid: int) -> dict[Child, int]:
    """Resident bytes of the descendant processes that this user may access."""
    found = {}
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                found[Child(child.pid, child.create_time())] = child.memory_info().rss
    return found


def with_workers(
    found: Explanation, before: dict[Child, int], after: dict[Child, int], visit: Callable[[int], Explanation]
) -> Explanation:
    """The explanation with the name of what grows in the workers, if their memory grows.

    Args:
        found: of the parent.
        before: bytes of its child processes at first.
        after: the same later.
        visit: explains a process; raises CannotAttach and CannotEnter.

    """
    first = grown_most(before, after)
    if first is None or grows_in_workers(found) is None:
        return found
    child, alike = first
    try:
        inside = visit(child.pid)
    except (CannotAttach, CannotEnter) as error:
        say(f"heapwatch: cannot find what grows in the workers: {error}", error=True)
        return found
    return with_names(found, inside, Worker(child.pid, alike, len(after)))
