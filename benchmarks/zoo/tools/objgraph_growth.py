"""objgraph: numbers of instances by type, as `show_growth` prints them."""

from __future__ import annotations

import gc
import time
from typing import Any

from benchmarks.zoo.score import ToolFinding
from benchmarks.zoo.tools import growth, inside

TITLE = "objgraph"
RULE = "types whose instances grew in number; it tells no bytes, so one more each round is enough"


def watch(seconds: float, script: str) -> list[Any]:
    import objgraph

    began, looks = time.monotonic(), []
    for share in growth.LOOKS:
        inside.sleep_until(began, share * seconds)
        gc.collect()
        looks.append(objgraph.typestats(shortnames=False))
    return growth.steady(looks, at_least=1)


def findings(output: list[Any]) -> tuple[ToolFinding, ...]:
    return tuple(ToolFinding(type=name) for name, _ in output)
