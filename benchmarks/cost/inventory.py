"""What finding undeclared leaks costs: how long it stops a program, and how much of its time it takes.

The heap has a million objects that the collector tracks, reachable from this module, and one list that grows.
A slice of the work releases the interpreter like any Python code; a list of all objects, and a search for
holders, do not: of these the longest counts. Times are of the thread's own CPU. What an hour costs follows
from what is handed out in it, asked of the budget with a clock that runs fast, by work that never ends.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.cost.training import confidence
from benchmarks.cost.turns import nothing, paired_blocks
from benchmarks.measure import Report, Table, at_most
from heapwatch.explain.engine import SLICE_SECONDS, Explainer
from heapwatch.explain.schedule import SHARE, Budget
from heapwatch.explain.tracing import FRAMES
from heapwatch.explain.tracing import SHARE as TRACED_SHARE

held: list[dict[str, list[int]]] = []
growing: list[bytes] = []

_OBJECTS = 1_000_000
_SECONDS = 60.0
_STALL_MILLISECONDS = 20
_TRACED_PAIRS = 30
_BLOCK_STEPS = 1000


def run() -> Report:
    table = Table("Finding what grows, in a heap of a million objects", "what | measured")
    explainer = _watched_heap()
    slices = f"{1000 * explainer.longest_slice:.1f} ms"
    table.rows += [
        ["longest slice of work, as CPU time", slices],
        ["longest piece that holds the interpreter", f"{1000 * explainer.census.pause_limit.longest:.1f} ms"],
        ["CPU time in the first minute", f"{1000 * sum(explainer.spent_on.values()):.0f} ms"],
        ["walks through all objects that are reached", f"{explainer.inventory.rounds}"],
        ["objects visited in one walk", f"{explainer.inventory.visited:,}"],
    ]
    hour = _share_of_an_hour()
    table.rows.append(["share of an hour, when there is always something to do", f"{hour:.3%}"])
    claims = [
        at_most(
            "A million objects: no slice holds a program up",
            1000 * explainer.longest_slice,
            _STALL_MILLISECONDS,
            " ms",
        ),
        at_most("An hour of finding what grows takes of the time", 100 * hour, 100 * SHARE + 0.001),
    ]
    slowdown, low, high = confidence(_traced_pairs())
    while_on = f"{slowdown:.0%} ({low:.0%} to {high:.0%})"
    table.rows.append([f"SB3 DQN is slowed while allocations are traced ({FRAMES} frames)", while_on])
    claims.append(at_most("Tracing slows SB3 DQN while its window lasts", 100 * slowdown * TRACED_SHARE, 5))
    return Report([table], claims)


def _watched_heap() -> Explainer:
    """An explainer that looked at the heap for a minute."""
    held.extend({"agent": [number]} for number in range(_OBJECTS // 2))
    explainer = Explainer()
    explainer.start()
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        growing.append(bytes(50_000))
        time.sleep(0.01)
    explainer.stop()
    return explainer


def _share_of_an_hour() -> float:
    """The share of an hour that the budget hands out when every slice is used."""
    now = [0.0]
    budget = Budget(lambda: now[0])
    while now[0] < 3600:
        now[0] += 0.1
        if budget.allows():
            budget.charge(SLICE_SECONDS)
    return budget.spent / now[0]


def _traced_pairs() -> list[tuple[float, float]]:
    @contextmanager
    def tracing() -> Iterator[None]:
        tracemalloc.start(FRAMES)
        yield
        tracemalloc.stop()

    return paired_blocks(nothing, _TRACED_PAIRS, during=tracing, block_steps=_BLOCK_STEPS)
