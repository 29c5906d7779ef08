"""python-leak-hunter: types that accumulate over two windows, and sites that still hold memory."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

from benchmarks.zoo.score import ToolFinding
from benchmarks.zoo.tools import growth
from benchmarks.zoo.tools.tracemalloc_difference import site

TITLE = "python-leak-hunter"
RULE = (
    "its own rule, with two seconds of training as the unit of work, since a script has no function to call, "
    "and with --trace; the first type goes with the first site, the second with the second, and so on"
)
UNIT_SECONDS = 2.0


def watch(seconds: float, script: str) -> list[Any]:
    from leak_hunter import measure_growth

    warm_up, window = growth.LOOKS[0] * seconds, (growth.LOOKS[-1] - growth.LOOKS[0]) / 2 * seconds
    report = measure_growth(
        lambda: time.sleep(UNIT_SECONDS),
        iterations=max(1, round(window / UNIT_SECONDS)),
        warmup=round(warm_up / UNIT_SECONDS),
        trace_allocations=True,
    )
    types = [grown.type_name for grown in report.growing]
    return [
        [name, place]
        for name, place in zip_longest(types, [at.location for at in report.allocations])
        if name
    ]


def findings(output: list[Any]) -> tuple[ToolFinding, ...]:
    return tuple(ToolFinding(type=name, sites=(site(place),) if place else ()) for name, place in output)
