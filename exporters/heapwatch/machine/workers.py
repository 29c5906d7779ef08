"""Equal processes, of which one is entered for all: which grows most, and what was found in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import psutil

from heapwatch.explain.findings import Explanation, grows_in_workers, ranked
from heapwatch.explain.thresholds import EXPLAINED
from heapwatch.judge.verdict import SERIOUS
from heapwatch.machine.groups import Groups, Member
from heapwatch.measure.process.private_memory import anonymous_bytes
from heapwatch.measure.process.process_tree import descendants

_MOST_WORKERS = 512
_ALIKE = 0.5  # of the growth of the one that grew most


class Representative(NamedTuple):
    """A process that stands for its equals.

    Attributes:
        pid: its id.
        alike: how many of them grow like it.
        among: how many there are.
        group: what their group is called.

    """

    pid: int
    alike: int
    among: int
    group: str = "workers of it"

    @property
    def called(self) -> str:
        """What they are called beside the program that started them."""
        kind, is_worker, _ = self.group.partition("workers of ")
        return f"{kind}workers" if is_worker else kind


def worker_sizes(groups: Groups, parent: int | None = None) -> dict[Member, int]:
    """Anonymous memory of each worker of this process, or of another one, that runs Python, in bytes."""
    sizes: dict[Member, int] = {}
    with suppress(psutil.NoSuchProcess):
        for member in groups.members(descendants(parent or os.getpid(), _MOST_WORKERS)):
            if member.is_python and (size := anonymous_bytes(member.pid)) is not None:
                sizes[member] = size
    return sizes


def grown_most(before: Mapping[Member, int], after: Mapping[Member, int]) -> Representative | None:
    """The process that grew most between two readings, for those of its group; None if none did."""
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
    """The explanation of the parent with what grows in a worker, for all workers that are like it.

    The growth of the workers is attributed to the names. What is left stays a finding if it is the most.
    The workers are `called` so, or by what they are to the parent.
    """
    whole = grows_in_workers(explanation)
    named = [one for one in inside.findings if one.path]
    if whole is None or not named:
        return explanation
    left, whole_rate, added = whole.bytes_per_minute, whole.bytes_per_minute, []
    for one in named:
        rate = min(left, entered.alike * one.bytes_per_minute)
        times = rate / one.bytes_per_minute if one.bytes_per_minute else entered.alike
        left -= rate
        added.append(
            replace(
                one,
                kind="worker",
                items=None if one.items is None else entered.alike * one.items,
                bytes=None if one.bytes is None else entered.alike * one.bytes,
                items_per_minute=None if one.items_per_minute is None else times * one.items_per_minute,
                type=f"{one.type} in {entered.alike} of {entered.among} {called or entered.called}",
                bytes_per_minute=rate,
                share=whole.share * rate / whole_rate,
            )
        )
    if left > EXPLAINED * whole_rate:
        share = whole.share * left / whole_rate
        added.append(replace(whole, remedy=None, bytes_per_minute=left, share=share))
    others = [one for one in explanation.findings if one is not whole]
    return replace(
        explanation,
        verdict=inside.verdict if inside.verdict in SERIOUS else explanation.verdict,
        findings=ranked((*added, *others)),
        time_left=explanation.time_left or inside.time_left,
        ends_on_gpu=explanation.ends_on_gpu if explanation.time_left else inside.ends_on_gpu,
    )
