"""Types named in heaps of several sizes, and the longest stop of the program beside its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.measure import Claim, Table
from benchmarks.reach.watched import PROGRAMS

SIZES = (200_000, 1_000_000, 5_000_000)
_MOST_SHARE = 0.4  # of a full collection
_USUAL_SECONDS = 0.04  # 20 ms are allowed; how long the first list takes is only predicted


def table() -> tuple[list[Table], list[Claim]]:
    """One row for each heap. Times are CPU time: a busy machine does not lengthen them much."""
    rows = Table(
        "A leaking type, named in a heap of so many objects",
        ["objects", "named after", "longest stop by a list of objects", "by the program's full collection"],
    )
    holds = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as state:
            done = subprocess.run(
                [sys.executable, str(PROGRAMS / "heap.py"), str(size)],
                env={**os.environ, "HEAPWATCH_STATE": state},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        said = json.loads(done.stdout)
        named = f"{said['named']:.0f} s" if said["is_named"] else "no"
        stall, collection = said["stall"], said["collection"]
        holds.append(said["is_named"] and stall < max(_USUAL_SECONDS, _MOST_SHARE * collection))
        rows.rows.append([f"{size:,}", named, f"{1000 * stall:.0f} ms", f"{1000 * collection:.0f} ms"])
        print(json.dumps(rows.rows[-1]), flush=True)
    claim = "the type is named, with stops of at most 40 ms, or of 40 % of the program's own collections"
    return [rows], [Claim(claim, f"{sum(holds)} of {len(holds)}", all(holds))]
