"""Chooses one of several equal processes to enter, and attributes their growth to what was found in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import psutil

from heapwatch.explain.findings import Explanation, Finding, grows_in_workers, ranked
from heapwatch.explain.thresholds import EXPLAINED
from heapwatch.judge.verdict import SERIOUS
from heapwatch.machine.groups import Groups, Member
from heapwatch.measure.process.process_tree import descendants
from heapwatch.measure.process.procfs import memory_parts

_MOST_WORKERS = 512
_ALIKE = 0.5  # of the growth of the one that grew most


class Representative(NamedTuple):
    """A process that stands for its equals.

    Attributes:
        pid: its id.
        alike: number of equals that grow like it, itself included.
        among: number of all equals.
        group: name of their group.

    """

    pid: int
    alike: int
    among: int
    group: str = "workers of it"

    @property
    def called(self) -> str:
        """The name of the equals in a text about the program that started them."""
        kind, is_worker, _ = self.group.partition("workers of ")
        return f"{kind}workers" if is_worker else kind


def worker_sizes(groups: Groups, parent: int | None = None) -> dict[Member, int]:
    """Anonymous memory in bytes of each worker that runs Python, of this process or of `parent`."""
    sizes: dict[Member, int] = {}
    with suppress(psutil.NoSuchProcess):
        for member in groups.members(descendants(parent or os.getpid(), _MOST_WORKERS)):
            if member.is_python and (parts := memory_parts(member.pid)) is not None:
                sizes[member] = parts.anonymous
    return sizes


def grown_most(before: Mapping[Member, int], after: Mapping[Member, int]) -> Representative | None:
    """The process that grew most between two readings, with the number of its equals; None if none grew."""
    growth = {member: size - before[member] for member, size in after.items() if member in before}
    first = max(growth, key=growth.__getitem__, default=None)
    if first is None or growth[first] <= 0:
        return None
    equals = [member for member in growth if member.group == first.group]
    alike = sum(growth[member] >= _ALIKE * growth[first] for member in equals)
    return Representative(first.pid, alike, len(equals), first.group)


def with_names(
    explanation: Explanation, inside: Explanation, entered: Representative, called: str = ""
) -> Explanation:
    """Attribute the growth of the workers to the named findings in one of them.

    Growth without a name stays a finding if it is more than half.

    Args:
        explanation: that of the parent process.
        inside: that of the worker that was entered.
        entered: the worker.
        called: name of the workers; by default their name beside the parent.

    """
    whole = grows_in_workers(explanation)
    named = [finding for finding in inside.findings if finding.path]
    if whole is None or not named:
        return explanation
    unnamed_rate, findings = whole.bytes_per_minute, []
    for finding in named:
        rate = min(unnamed_rate, entered.alike * finding.bytes_per_minute)
        unnamed_rate -= rate
        findings.append(
            replace(
                _in_all(finding, entered.alike, rate),
                kind="worker",
                type=f"{finding.type} in {entered.alike} of {entered.among} {called or entered.called}",
                share=whole.share * rate / whole.bytes_per_minute,
            )
        )
    if unnamed_rate > EXPLAINED * whole.bytes_per_minute:
        share = whole.share * unnamed_rate / whole.bytes_per_minute
        findings.append(replace(whole, remedy=None, bytes_per_minute=unnamed_rate, share=share))
    findings += [finding for finding in explanation.findings if finding is not whole]
    return replace(
        explanation,
        verdict=inside.verdict if inside.verdict in SERIOUS else explanation.verdict,
        findings=ranked(findings),
        time_left=explanation.time_left or inside.time_left,
        ends_on_gpu=explanation.ends_on_gpu if explanation.time_left else inside.ends_on_gpu,
    )


def _in_all(finding: Finding, processes: int, rate: float) -> Finding:
    """The finding of one process for several, which together grow by `rate` bytes a minute."""
    times = rate / finding.bytes_per_minute if finding.bytes_per_minute else processes
    return replace(
        finding,
        items=None if finding.items is None else processes * finding.items,
        bytes=None if finding.bytes is None else processes * finding.bytes,
        items_per_minute=None if finding.items_per_minute is None else times * finding.items_per_minute,
        bytes_per_minute=rate,
    )
