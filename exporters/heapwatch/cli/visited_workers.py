"""What grows in the child processes of a visited process: the one that grew most is visited for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import psutil

from heapwatch.attach import CannotAttach
from heapwatch.entering.refusals import CannotEnter
from heapwatch.explain.findings import Explanation
from heapwatch.explain.workers import Worker, grown_most, grows_in_workers, with_names
from heapwatch.runtime.plain_text import say


class Child(NamedTuple):
    """A child process: its id, and when it began in seconds since the epoch."""

    pid: int
    began: float


def children_of(pid: int) -> dict[Child, int]:
    """Resident bytes of the child processes that this user may look at, and of theirs."""
    found = {}
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return {}
    for child in children:
        try:
            found[Child(child.pid, child.create_time())] = child.memory_info().rss
        except psutil.Error:
            continue
    return found


def with_workers(
    found: Explanation, before: dict[Child, int], after: dict[Child, int], visit: Callable[[int], Explanation]
) -> Explanation:
    """The explanation with the name of what grows in the workers, where their memory grows.

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
