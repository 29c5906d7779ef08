"""Counting live objects by class, beside the tools that do."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.measure import Peers, Report, Table, at_least, at_most, interleaved, milliseconds
from heapwatch.collectors.declared import ObjectCollector
from heapwatch.measure.objects.instances import InstanceCounter
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, DEFAULT_INTERVAL, SafePoint


class Agent:
    """Something to count."""


def run() -> Report:
    peers = Peers()
    muppy, summary = peers.load("pympler.muppy"), peers.load("pympler.summary")
    objgraph = peers.load("objgraph")
    census, with_arrays = (
        InstanceCounter([Agent, torch.Tensor]),
        InstanceCounter([Agent, torch.Tensor, np.ndarray]),
    )
    slow: dict[str, Callable[[], object]] = {}
    if muppy and summary:
        slow["pympler muppy + summary"] = lambda: summary.summarize(muppy.get_objects())
    fast: dict[str, Callable[[], object]] = {
        "`Counter(map(type, gc.get_objects()))`": lambda: Counter(map(type, gc.get_objects())),
        "heapwatch, two classes": census.take,
        "heapwatch, and arrays": with_arrays.take,
    }
    if objgraph:
        fast["objgraph.most_common_types"] = objgraph.most_common_types

    columns: dict[str, dict[str, float]] = {}
    held: list[object] = []
    for target in (270_000, 1_170_000):
        missing = max(0, target - len(gc.get_objects()))
        held += [{"agent": [number]} for number in range(missing // 2)]
        agents = [Agent() for _ in range(1000)]
        label = f"{len(gc.get_objects()) / 1e6:.2f} M"
        while with_arrays.take().get("ndarray") is None:
            pass
        columns[label] = interleaved(slow, 1) | interleaved(fast, 7)
        assert census.take()["Agent"] == len(agents)

    rows = [*slow, *fast]
    table = Table(
        "Census of live objects: milliseconds, for which the program stops",
        " | ".join(["technique", *columns]),
        [[name, *(milliseconds(column[name]) for column in columns.values())] for name in rows],
    )
    largest = list(columns.values())[-1]
    ours = largest["heapwatch, two classes"]
    claims = [at_most("census duty cycle", 100 * duty_cycle(), 0.5)]
    if "pympler muppy + summary" in largest:
        ratio = largest["pympler muppy + summary"] / ours
        claims.insert(0, at_least("census at 1e6 objects: faster than pympler", ratio, 50))
    return Report([table], claims, peers.missing)


def duty_cycle() -> float:
    """Share of the time that censuses take at the safe point, over an hour of the safe point's own clock."""
    clock = _Clock()
    collector = ObjectCollector(interval=DEFAULT_INTERVAL)
    collector.count(Agent)
    point = SafePoint(Failures(), budget=DEFAULT_BUDGET, clock=clock)
    point.schedule(collector, anywhere=False)
    began = clock()
    while clock() - began < 3600:
        point.visit(stepping=True)
        clock.skipped += 1.0
    return point.tasks[0].total / (clock() - began)


class _Clock:
    """Real time, and what was skipped."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.skipped
