"""Programs under `heapwatch run`: workers of each kind, memory of C code; and types named in large heaps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measure import Claim, Table
from benchmarks.reach.entered import PROGRAMS
from benchmarks.running import started
from heapwatch.errors import Unreachable
from heapwatch.http.client import get_json
from tests.support.ports import free_port

WORKERS = (
    "fork", "spawn", "forkserver", "ProcessPoolExecutor", "joblib (loky)", "SubprocVecEnv", "AsyncVectorEnv",
    "DataLoader", "torchrun", "subprocess",
)  # fmt: skip
WORKERS_PATIENCE, NATIVE_PATIENCE = 600.0, 420.0
NATIVE_LINES = {
    "SQLite in memory": 'database.execute("insert',
    "Box2D fixtures": "CreateEdgeFixture",
    "C library by ctypes": "zlib.deflateInit_",
    "torch: C++ cycle": "backward(create_graph=True)",
}
HEAP_SIZES = (200_000, 1_000_000, 5_000_000)
_LEAKS = ("leak", "growing", "will not fit")
_MOST_SHARE = 0.4  # of a full collection
_USUAL_SECONDS = 0.04  # 20 ms are allowed; how long the first list takes is only predicted
_AGAIN_SECONDS = 2.0
_SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
Document = dict[str, Any]


class Watched:
    """A program under `heapwatch run`, until the context ends.

    Attributes:
        verdicts: all that were said so far.

    """

    def __init__(self, stack: ExitStack, program: str, *arguments: str, **environment: str) -> None:
        self.verdicts: set[str] = set()
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/explain"
        command = [sys.executable, "-m", "heapwatch", "run", "--quiet", "--port", str(port)]
        script = str(PROGRAMS / f"{program}.py")
        self._process = stack.enter_context(started([*command, script, *arguments], environment, **_SILENT))
        self._began = time.monotonic()

    def explanation(self) -> Document:
        """The explanation at the moment; an empty one until the program answers.

        Raises:
            RuntimeError: the program has ended.

        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the program ended with {self._process.returncode}")
        try:
            document: Document = get_json(self._url)
        except Unreachable:
            return {"verdict": "", "findings": []}
        self.verdicts.add(document["verdict"])
        return document

    def found(self, wanted: Callable[[Document], bool], seconds: float) -> tuple[Document | None, float]:
        """The first finding that is wanted, and after how many seconds it was there."""
        while (passed := time.monotonic() - self._began) < seconds:
            for finding in self.explanation()["findings"]:
                if wanted(finding):
                    return finding, passed
            time.sleep(_AGAIN_SECONDS)
        return None, seconds


def line_of(program: str, text: str) -> int:
    """The number of the first line of a program that holds `text`."""
    lines = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def is_at(finding: Mapping[str, Any], program: str, text: str) -> bool:
    """Whether a finding gives the line of the program that holds `text`."""
    site = finding.get("site") or {}
    return Path(site.get("file", "")).stem == program and site.get("line") == line_of(program, text)


def workers() -> tuple[list[Table], list[Claim]]:
    """One row for each kind; the leaking program, its twin and one that nobody watches run side by side."""
    rows = Table(
        "Three workers of a kind, each with a leak of 1 MB/s, under `heapwatch run`",
        "workers | named | line | named after | healthy twin | steps, of those without watching",
    )
    right = 0
    for kind in WORKERS:
        row, is_right = _workers_of(kind)
        right += is_right
        rows.measured(*row)
    claim = "what grows in workers is named with its line, and the healthy twin is quiet"
    return [rows], [Claim(claim, f"{right} of {len(WORKERS)} kinds", right == len(WORKERS))]


def _workers_of(kind: str) -> tuple[list[str], bool]:
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        watched_steps, plain_steps = Path(place, "watched"), Path(place, "plain")
        leaking = Watched(stack, "workers", kind, SIMULATION_STEPS=str(watched_steps))
        twin = Watched(stack, "workers", kind, SIMULATION="steady")
        plain = [sys.executable, str(PROGRAMS / "workers.py"), kind]
        stack.enter_context(started(plain, {"SIMULATION_STEPS": str(plain_steps)}, **_SILENT))
        try:
            finding, seconds = leaking.found(
                lambda one: one["kind"] == "worker" and "trajectory" in (one["path"] or ""), WORKERS_PATIENCE
            )
            twin.explanation()
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


def native() -> tuple[list[Table], list[Claim]]:
    """One row for each leak of memory that C code holds."""
    columns = "leak | named as | line | after"
    rows = Table("Memory that C code takes and keeps", columns)
    right = 0
    for leak, text in NATIVE_LINES.items():
        with ExitStack() as stack:
            watched = Watched(stack, "native", leak)
            try:
                finding, seconds = watched.found(lambda one: bool(one["site"]), NATIVE_PATIENCE)
            except RuntimeError as error:
                row = [leak, f"{error}", "", ""]
            else:
                at = finding is not None and is_at(finding, "native", text)
                right += at
                name = "no" if finding is None else finding["path"] or finding["type"]
                row = [leak, name, "right" if at else "no", f"{seconds:.0f} s"]
        rows.measured(*row)
    claim = "leaks of C code have the line of the program that takes the memory"
    return [rows], [Claim(claim, f"{right} of {len(NATIVE_LINES)}", right == len(NATIVE_LINES))]


def heaps() -> tuple[list[Table], list[Claim]]:
    """One row for each heap. Times are CPU time: a busy machine does not lengthen them much."""
    rows = Table(
        "A leaking type, named in a heap of so many objects",
        "objects | named after | longest stop by a list of objects | by the program's full collection",
    )
    holds = []
    for size in HEAP_SIZES:
        with tempfile.TemporaryDirectory() as state:
            command = [sys.executable, str(PROGRAMS / "heap.py"), str(size)]
            environment = {**os.environ, "HEAPWATCH_STATE": state}
            said = json.loads(subprocess.check_output(command, env=environment))
        named = f"{said['named']:.0f} s" if said["is_named"] else "no"
        stall, collection = said["stall"], said["collection"]
        holds.append(said["is_named"] and stall < max(_USUAL_SECONDS, _MOST_SHARE * collection))
        rows.measured(f"{size:,}", named, f"{1000 * stall:.0f} ms", f"{1000 * collection:.0f} ms")
    claim = "the type is named, with stops of at most 40 ms, or of 40 % of the program's own collections"
    return [rows], [Claim(claim, f"{sum(holds)} of {len(holds)}", all(holds))]
