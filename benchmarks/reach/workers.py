"""Workers of each kind with a leak in them, and the same without one, by `heapwatch run` alone."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import Claim, Table
from benchmarks.reach.watched import PROGRAMS, Watched, is_at, started

KINDS = (
    "fork",
    "spawn",
    "forkserver",
    "ProcessPoolExecutor",
    "joblib (loky)",
    "SubprocVecEnv",
    "AsyncVectorEnv",
    "DataLoader",
    "torchrun",
    "subprocess",
)
PATIENCE = 600.0
_LEAKS = ("leak", "growing", "will not fit")


def table(kinds: tuple[str, ...] = KINDS) -> tuple[list[Table], list[Claim]]:
    """One row for each kind; the leaking program, its twin and one that nobody watches run side by side."""
    rows = Table(
        "Three workers of a kind, each with a leak of 1 MB/s, under `heapwatch run`",
        ["workers", "named", "line", "named after", "healthy twin", "steps, of those without watching"],
    )
    right = 0
    for kind in kinds:
        row, is_right = _row(kind)
        right += is_right
        rows.rows.append(row)
        print(json.dumps(row), flush=True)
    claim = "what grows in workers is named with its line, and the healthy twin is quiet"
    return [rows], [Claim(claim, f"{right} of {len(kinds)} kinds", right == len(kinds))]


def _row(kind: str) -> tuple[list[str], bool]:
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        watched_steps, plain_steps = Path(place, "watched"), Path(place, "plain")
        leaking = Watched(stack, "workers", kind, SIMULATION_STEPS=str(watched_steps))
        twin = Watched(stack, "workers", kind, SIMULATION="steady")
        script = str(PROGRAMS / "workers.py")
        stack.enter_context(started(sys.executable, script, kind, SIMULATION_STEPS=str(plain_steps)))
        try:
            finding, seconds = leaking.found(
                lambda one: one["kind"] == "worker" and "trajectory" in (one["path"] or ""), PATIENCE
            )
            twin.look()
        except RuntimeError as error:
            return [kind, f"{error}", "", "", "", ""], False
        steps = watched_steps.stat().st_size / max(1, plain_steps.stat().st_size)
    said = ", ".join(sorted(twin.verdicts - {""})) or "nothing"
    quiet = twin.verdicts.isdisjoint(_LEAKS)
    if finding is None:
        return [kind, "no", "", "", said, f"{steps:.0%}"], False
    at = is_at(finding, "simulation", "self.trajectory.append")
    name = f"`{finding['path']}`, {finding['type']}"
    return [kind, name, "right" if at else "no", f"{seconds:.0f} s", said, f"{steps:.0%}"], at and quiet
