"""Pympler: bytes by type, as its SummaryTracker prints them."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.zoo.score import ToolFinding
from benchmarks.zoo.tools import growth, inside

TITLE = "Pympler"
RULE = "types whose instances grew in bytes"


def watch(seconds: float, script: str) -> list[Any]:
    from pympler import muppy, summary

    began, looks = time.monotonic(), []
    for share in growth.LOOKS:
        inside.sleep_until(began, share * seconds)
        rows = summary.summarize(muppy.get_objects())
        looks.append({str(name): float(size) for name, _, size in rows})
    return growth.steady(looks, at_least=growth.least_bytes(seconds))


def findings(output: list[Any]) -> tuple[ToolFinding, ...]:
    return tuple(ToolFinding(type=name) for name, _ in output)
