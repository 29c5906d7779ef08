"""What a training step and a phase pay."""

from __future__ import annotations

import logging
import time

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Summary

import heapwatch
from benchmarks.measure import Report, Table, at_least, interleaved, nanoseconds

_CALLS = 2000
_ROUNDS = 100


def run() -> Report:
    logging.getLogger("heapwatch").setLevel(logging.ERROR)
    registry = CollectorRegistry()
    counter = Counter("steps", "", registry=registry)
    labelled = Counter("labelled_steps", "", ["unit"], registry=registry)
    seconds = Summary("phase_seconds", "", ["phase"], registry=registry)
    memory = Gauge("phase_memory_bytes", "", ["phase", "at"], registry=registry)
    process = psutil.Process()

    def timed_phase() -> None:
        memory.labels("train", "begin").set(process.memory_info().rss)
        began = time.perf_counter()
        seconds.labels("train").observe(time.perf_counter() - began)
        memory.labels("train", "end").set(process.memory_info().rss)

    with heapwatch.start("benchmark", port=0, interval=3600.0) as watch:
        watch.step()

        def phase() -> None:
            with watch.phase("train"):
                pass

        phase()
        plain = {
            "`watch.step()`": watch.step,
            "prometheus `Counter.inc()`": counter.inc,
            "prometheus `labels().inc()`": lambda: labelled.labels("step").inc(),
            "an empty function": lambda: None,
        }
        phases = {
            "`with watch.phase()`": phase,
            "psutil timer with labelled metrics": timed_phase,
            "psutil RSS": process.memory_info,
        }
        cost = interleaved(plain, _ROUNDS, _CALLS) | interleaved(phases, _ROUNDS, _CALLS // 20)
    table = Table("On the step path", "call | nanoseconds")
    table.rows = [[name, nanoseconds(each)] for name, each in cost.items()]
    return Report(
        [table],
        [
            at_least(
                "`step()` is cheaper than `Counter.inc()`",
                cost["prometheus `Counter.inc()`"] / cost["`watch.step()`"],
                4,
            ),
            at_least(
                "a phase is cheaper than a psutil timer with labelled metrics",
                cost["psutil timer with labelled metrics"] / cost["`with watch.phase()`"],
                5,
            ),
        ],
    )
