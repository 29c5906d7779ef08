"""The stay of `heapwatch explain PID` in a process: enter, look until the verdict is certain, leave."""

from __future__ import annotations

import time

from heapwatch.attach import name_of, process_of
from heapwatch.cli.interrupt import interrupt_on_termination
from heapwatch.cli.visited_workers import children_of, with_workers
from heapwatch.entering.entrance import Entrance
from heapwatch.entering.inside import EXPLANATION
from heapwatch.entering.refusals import CannotEnter
from heapwatch.explain.findings import Explanation, foremost, headline
from heapwatch.explain.received import explanation_of
from heapwatch.runtime.plain_text import say

DEFAULT_SECONDS = 300.0
_UNCERTAIN = ("too early", "growing")
_EVERY_SECONDS = 1.0
_TOLD_SECONDS = 10.0
_WORKERS_SECONDS = 60.0
_LEAST_SECONDS = 60.0  # for a worker: a verdict takes less
_SILENT_SECONDS = 30.0  # a program may hold the interpreter's lock for long


def visit(pid: int, seconds: float = DEFAULT_SECONDS, *, quiet: bool = False) -> Explanation:
    """The explanation of a process that is entered for it, and left; then of a worker if these grow.

    Args:
        pid: the process.
        seconds: how long to stay at most.
        quiet: whether to tell nothing of what is seen meanwhile.

    Raises:
        CannotAttach: there is no such process, or this user may not look at it.
        CannotEnter: it cannot be entered, or ended before anything was known.

    """
    children, until = children_of(pid), time.monotonic() + seconds
    found = _visit_one(pid, seconds, quiet=quiet)

    def visit_worker(worker: int) -> Explanation:
        return _visit_one(worker, max(_LEAST_SECONDS, until - time.monotonic()), quiet=quiet)

    return with_workers(found, children, children_of(pid), visit_worker)


def _visit_one(pid: int, seconds: float, *, quiet: bool) -> Explanation:
    name = name_of(process_of(pid))
    with Entrance(pid) as entrance:
        began = time.monotonic()
        try:
            interrupt_on_termination()
            answer = entrance.ask("explain", name=name)
            if not answer.get("enabled", True):
                raise CannotEnter(f"process {pid} has HEAPWATCH_EXPLAIN=off in its environment")
            if not quiet:
                say(f"process {pid} ({name}) is entered, for {seconds:.0f} s at most", error=True)
            found = _watch(entrance, began + seconds, quiet=quiet)
        except KeyboardInterrupt:
            found = _latest(entrance)
        if found is None:
            ended = "" if entrance.is_alive() else ": it has ended"
            raise CannotEnter(f"process {pid} has sent no explanation{ended}")
    if not quiet:
        say(f"process {pid} is left", error=True)
    return found


def _watch(entrance: Entrance, until: float, *, quiet: bool) -> Explanation | None:
    """The first certain explanation, or the last of a process that ends, falls silent, or takes too long."""
    found, seen_at, told, told_at = None, time.monotonic(), "", time.monotonic()
    while True:
        latest, now = _latest(entrance), time.monotonic()
        if latest is not None and latest != found:
            found, seen_at = latest, now
            if found.verdict not in _UNCERTAIN or _is_of_workers(found):
                return found
            line = headline(found)
            if not quiet and now - told_at >= _TOLD_SECONDS and line != told:
                say(line, error=True)
                told, told_at = line, now
        if now >= until or now - seen_at > _SILENT_SECONDS or not entrance.is_alive():
            return found
        time.sleep(_EVERY_SECONDS)


def _is_of_workers(found: Explanation) -> bool:
    """Whether the growth is that of its workers: one of them tells more, and sooner."""
    first = foremost(found)
    return first is not None and first.kind == "worker" and found.seconds >= _WORKERS_SECONDS


def _latest(entrance: Entrance) -> Explanation | None:
    document = entrance.latest(EXPLANATION)
    if document is None:
        return None
    try:
        return explanation_of(document)
    except ValueError as error:
        raise CannotEnter(f"process {entrance.pid} sends no explanation: {error}") from None
