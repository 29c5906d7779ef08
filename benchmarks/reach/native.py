"""Leaks of memory that C code holds, by the line of the program, with HEAPWATCH_NATIVE=on."""

from __future__ import annotations

import json
from contextlib import ExitStack

from benchmarks.measure import Claim, Table
from benchmarks.reach.watched import Watched, is_at

LINES = {
    "SQLite in memory": 'database.execute("insert',
    "Box2D fixtures": "CreateEdgeFixture",
    "C library by ctypes": "zlib.deflateInit_",
    "torch: C++ cycle": "backward(create_graph=True)",
    "Arrow's pool": "batch = pyarrow.table",
}
PATIENCE = 420.0


def table() -> tuple[list[Table], list[Claim]]:
    """One row for each leak."""
    rows = Table("Memory that C code takes and keeps", ["leak", "named as", "line", "after"])
    right = 0
    for leak, text in LINES.items():
        with ExitStack() as stack:
            watched = Watched(stack, "native", leak, HEAPWATCH_NATIVE="on")
            try:
                finding, seconds = watched.found(lambda one: bool(one["site"]), PATIENCE)
            except RuntimeError as error:
                rows.rows.append([leak, f"{error}", "", ""])
            else:
                at = finding is not None and is_at(finding, "native", text)
                right += at
                name = "no" if finding is None else finding["path"] or finding["type"]
                rows.rows.append([leak, name, "right" if at else "no", f"{seconds:.0f} s"])
        print(json.dumps(rows.rows[-1]), flush=True)
    claim = "leaks of C code have the line of the program that takes the memory"
    return [rows], [Claim(claim, f"{right} of {len(LINES)}", right == len(LINES))]
