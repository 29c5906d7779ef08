"""Trainers on a GPU that run under `heapwatch run`, or are entered: what is said of them, and what stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from benchmarks.reach.entered import PROGRAMS, leave, rounds, serve
from benchmarks.reach.watched import Watched, is_at
from benchmarks.running import started
from heapwatch.explain.findings import message
from heapwatch.explain.received import explanation_of
from heapwatch.http.client import get_json

PROGRAM, LINE, PATH = "gpu_training", "self.history.append", "learner.history"
NOTHING: dict[str, Any] = {"verdict": "", "findings": []}
PATIENCE, ROUNDS_SECONDS = 240.0, 30.0
_STARTED_SECONDS = 5.0
_SERIOUS = {"leak", "growing", "will not fit"}


def watched() -> list[tuple[str, bool, str, str]]:
    """What was tried, whether it is right, what was found, and what was expected."""
    rows = []
    with ExitStack() as stack:
        leaking = {leak: Watched(stack, PROGRAM, leak) for leak in ("tensors", "graphs")}
        healthy = Watched(stack, PROGRAM, "steady")
        for leak, one in leaking.items():
            finding, seconds = one.found(lambda found: bool(found["is_leak"]), PATIENCE)
            said = message(explanation_of(one.explanation()))
            good = finding is not None and is_named(finding) and said.startswith("GPU memory grows")
            what = f"`heapwatch run` of a trainer that keeps {leak}"
            rows.append((what, good, f"after {seconds:.0f} s: {said}", f"GPU memory, {PATH} and its line"))
        healthy.explanation()
    quiet = _SERIOUS.isdisjoint(healthy.verdicts)
    said = ", ".join(sorted(healthy.verdicts - {""}))
    return [*rows, ("`heapwatch run` of its healthy twin", quiet, said, "no leak")]


def is_named(finding: dict[str, Any]) -> bool:
    """Whether a finding has the path and the line of the program's leak."""
    return PATH in (finding["path"] or "") and is_at(finding, PROGRAM, LINE)


def entered() -> list[tuple[str, bool, str, str]]:
    """The same rows of a trainer that runs without Heapwatch, and of rounds into one that checks itself."""
    with ExitStack() as stack:
        command = [sys.executable, str(PROGRAMS / f"{PROGRAM}.py"), "tensors"]
        process = stack.enter_context(started(command, stdout=subprocess.PIPE, text=True))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(_STARTED_SECONDS)  # torch begins its threads with the first steps
        before = _kept(process.pid)
        url, began, found = serve(process.pid), time.monotonic(), NOTHING
        while time.monotonic() - began < PATIENCE and found["verdict"] != "leak":
            time.sleep(1)
            found = get_json(f"{url}explain")
        seconds = time.monotonic() - began
        said = message(explanation_of(found)) if found["verdict"] else ""
        good = any(map(is_named, found["findings"])) and said.startswith("GPU memory grows")
        get_json(f"{url}performance_status")
        leave(process.pid)
        after = _kept(process.pid)
        used = psutil.Process(process.pid).cpu_times().user
        time.sleep(2)
        goes_on = process.poll() is None and psutil.Process(process.pid).cpu_times().user > used
    done, harm = rounds(sys.executable, "gpu_checked", ROUNDS_SECONDS)
    return [
        ("a running trainer is entered", good, f"after {seconds:.0f} s: {said}", f"{PATH} and its line"),
        ("threads, sockets and devices open after it was left", after == before, str(after), str(before)),
        ("the trainer goes on", goes_on, "yes" if goes_on else "no", "yes"),
        (f"rounds of entering and leaving in {ROUNDS_SECONDS:.0f} s", not harm, harm or f"{done}", "no harm"),
    ]


def _kept(pid: int) -> tuple[int, int, int]:
    """The numbers of threads, of sockets, and of open files of the driver."""
    process = psutil.Process(pid)
    opened = [os.path.realpath(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
    devices = [path for path in opened if "nvidia" in path]
    return process.num_threads(), len(process.net_connections()), len(devices)
