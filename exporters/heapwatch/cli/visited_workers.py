"""What grows in the child processes of a visited process: the one that grew most is visited for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import psutil

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.attach import CannotAttach
from heapwatch.entering.refusals import CannotEnter
from heapwatch.explain.findings import Explanation, Finding, ranked
from heapwatch.runtime.plain_text import say

_ALIKE = 0.5  # of the growth of the one that grew most


class Worker(NamedTuple):
    """A child process: its id, when it began in seconds since the epoch, and resident bytes."""

    pid: int
    began: float
    resident: int


def workers_of(pid: int) -> list[Worker]:
    """The child processes that this user may look at, and theirs."""
    found = []
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    for child in children:
        try:
            found.append(Worker(child.pid, child.create_time(), child.memory_info().rss))
        except psutil.Error:
            continue
    return found


def with_workers(
    found: Explanation, before: list[Worker], after: list[Worker], visit: Callable[[int], Explanation]
) -> Explanation:
    """The explanation with the name of what grows in the workers, where their memory grows.

    Args:
        found: of the parent.
        before: its workers at first.
        after: the same later.
        visit: explains a process; raises CannotAttach and CannotEnter.

    """
    worker = next((one for one in found.findings if one.kind == "worker"), None)
    if worker is None or worker.items_per_minute:  # more and more processes: their number is the finding
        return found
    earlier = {(one.pid, one.began): one.resident for one in before}
    grown = {
        one.pid: one.resident - earlier[one.pid, one.began]
        for one in after
        if (one.pid, one.began) in earlier
    }
    first = max(grown, key=grown.__getitem__, default=None)
    if first is None or grown[first] <= 0:
        return found
    try:
        inside = visit(first)
    except (CannotAttach, CannotEnter) as error:
        say(f"heapwatch: cannot find what grows in the workers: {error}", error=True)
        return found
    alike = sum(one >= _ALIKE * grown[first] for one in grown.values())
    named = [_in_workers(one, alike, len(after)) for one in inside.findings if one.path and one.site]
    others = [one for one in found.findings if one is not worker]
    if not named:
        return found
    verdict = inside.verdict if inside.verdict in SERIOUS else found.verdict
    left = found.time_left or inside.time_left
    findings = ranked((replace(worker, remedy=None), *named, *others))
    return replace(found, verdict=verdict, findings=findings, time_left=left)


def _in_workers(finding: Finding, alike: int, count: int) -> Finding:
    """A finding in one worker, as a finding about all workers that are like it."""
    return replace(finding, type=f"{finding.type} in {alike} of {count} workers", share=0.0)
