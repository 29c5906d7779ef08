"""What finding undeclared leaks costs: how much tracing slows a trainer.

The tests check the share of an hour that searching takes. `make bench-reach` measures how long a large heap
is stopped.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.cost.training import confidence
from benchmarks.cost.turns import Empty, paired_blocks
from benchmarks.measure import Report, Table, at_most
from heapwatch.explain.tracing import FRAMES, SHARE

_TRACED_PAIRS = 30
_BLOCK_STEPS = 1000


def run() -> Report:
    pairs = paired_blocks(Empty(), _TRACED_PAIRS, during=_tracing, block_steps=_BLOCK_STEPS)
    slowdown, low, high = confidence(pairs)
    while_on = f"{slowdown:.0%} ({low:.0%} to {high:.0%})"
    table = Table("Finding what grows", "what | measured")
    table.rows = [[f"SB3 DQN is slowed while allocations are traced ({FRAMES} frames)", while_on]]
    claim = at_most("Tracing slows SB3 DQN while its window lasts", 100 * slowdown * SHARE, 5)
    return Report([table], [claim])


@contextmanager
def _tracing() -> Iterator[None]:
    tracemalloc.start(FRAMES)
    yield
    tracemalloc.stop()
