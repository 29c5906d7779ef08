"""What finding undeclared leaks costs: how much of an hour it takes, and how much tracing slows a trainer.

What an hour costs follows from what is handed out in it, asked of the budget with a clock that runs fast, by
work that never ends. How long a large heap is stopped, `make bench-reach` measures.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.cost.training import confidence
from benchmarks.cost.turns import Empty, paired_blocks
from benchmarks.measure import Report, Table, at_most
from heapwatch.explain.engine import SLICE_SECONDS
from heapwatch.explain.schedule import SHARE, Budget
from heapwatch.explain.tracing import FRAMES
from heapwatch.explain.tracing import SHARE as TRACED_SHARE

_TRACED_PAIRS = 30
_BLOCK_STEPS = 1000


def run() -> Report:
    hour = _share_of_an_hour()
    pairs = paired_blocks(Empty(), _TRACED_PAIRS, during=_tracing, block_steps=_BLOCK_STEPS)
    slowdown, low, high = confidence(pairs)
    while_on = f"{slowdown:.0%} ({low:.0%} to {high:.0%})"
    table = Table("Finding what grows", "what | measured")
    table.rows = [
        ["share of an hour, when there is always something to do", f"{hour:.3%}"],
        [f"SB3 DQN is slowed while allocations are traced ({FRAMES} frames)", while_on],
    ]
    claims = [
        at_most("An hour of finding what grows takes of the time", 100 * hour, 100 * SHARE + 0.001),
        at_most("Tracing slows SB3 DQN while its window lasts", 100 * slowdown * TRACED_SHARE, 5),
    ]
    return Report([table], claims)


def _share_of_an_hour() -> float:
    """The share of an hour that the budget hands out when every slice is used."""
    now = [0.0]
    budget = Budget(lambda: now[0])
    while now[0] < 3600:
        now[0] += 0.1
        if budget.allows():
            budget.charge(SLICE_SECONDS)
    return budget.spent / now[0]


@contextmanager
def _tracing() -> Iterator[None]:
    tracemalloc.start(FRAMES)
    yield
    tracemalloc.stop()
