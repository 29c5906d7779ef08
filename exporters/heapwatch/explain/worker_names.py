"""What grows in worker processes that are alike, from the explanation of one of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.explain.findings import Explanation, Finding, ranked
from heapwatch.explain.rest import EXPLAINED

_ALIKE = 0.5  # of the growth of the one that grew most
_Key = TypeVar("_Key", bound=Hashable)


class Worker(NamedTuple):
    """A worker process that stands for others: how many grow like it, among how many."""

    pid: int
    alike: int
    among: int


def grown_most(before: Mapping[_Key, int], after: Mapping[_Key, int]) -> tuple[_Key, int] | None:
    """The process that grew most between two readings, and how many grew like it; None if none did."""
    grown = {key: size - before[key] for key, size in after.items() if key in before}
    first = max(grown, key=grown.__getitem__, default=None)
    if first is None or grown[first] <= 0:
        return None
    return first, sum(one >= _ALIKE * grown[first] for one in grown.values())


def grows_in_workers(found: Explanation) -> Finding | None:
    """The finding about memory of workers, if it grows in them and not with their number."""
    workers = (one for one in found.findings if one.kind == "worker" and one.path is None)
    return next((one for one in workers if not one.items_per_minute), None)


def with_names(found: Explanation, inside: Explanation, worker: Worker) -> Explanation:
    """The explanation of the parent with what grows in a worker, for all workers that are like it.

    The growth of the workers is attributed to the names. What is left stays a finding if it is the most.
    """
    whole = grows_in_workers(found)
    named = [one for one in inside.findings if one.path]
    if whole is None or not named:
        return found
    left, whole_rate, added = whole.bytes_per_minute, whole.bytes_per_minute, []
    for one in named:
        rate = min(left, worker.alike * one.bytes_per_minute)
        left -= rate
        added.append(
            replace(
                one,
                kind="worker",
                type=f"{one.type} in {worker.alike} of {worker.among} workers",
                bytes_per_minute=rate,
                share=whole.share * rate / whole_rate,
            )
        )
    if left > EXPLAINED * whole_rate:
        share = whole.share * left / whole_rate
        added.append(replace(whole, remedy=None, bytes_per_minute=left, share=share))
    others = [one for one in found.findings if one is not whole]
    return replace(
        found,
        verdict=inside.verdict if inside.verdict in SERIOUS else found.verdict,
        findings=ranked((*added, *others)),
        time_left=found.time_left or inside.time_left,
    )
