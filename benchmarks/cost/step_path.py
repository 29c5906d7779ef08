"""What a training step and a phase pay."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, Counter

import heapwatch
from benchmarks.measure import Report, Table, at_least, interleaved, nanoseconds

_CALLS = 2000
_ROUNDS = 100


def run() -> Report:
    logging.getLogger("heapwatch").setLevel(logging.ERROR)
    registry = CollectorRegistry()
    counter = Counter("steps", "", registry=registry)
    labelled = Counter("labelled_steps", "", ["unit"], registry=registry)
    with heapwatch.start("benchmark", port=0, interval=3600.0) as watch:

        def phase() -> None:
            with watch.phase("train"):
                pass

        calls = {
            "`watch.step()`": watch.step,
            "prometheus `Counter.inc()`": counter.inc,
            "prometheus `labels().inc()`": lambda: labelled.labels("step").inc(),
            "an empty function": lambda: None,
        }
        watch.step()
        phase()
        cost = interleaved(calls, _ROUNDS, _CALLS)
        cost |= interleaved({"`with watch.phase()`": phase}, _ROUNDS, _CALLS // 20)
    table = Table("On the step path", "call | nanoseconds")
    table.rows = [[name, nanoseconds(each)] for name, each in cost.items()]
    ratio = cost["prometheus `Counter.inc()`"] / cost["`watch.step()`"]
    return Report([table], [at_least("`step()` is cheaper than `Counter.inc()`", ratio, 4)])
