"""Every program for some minutes on each Python: `python -m tests.harmless [--seconds 300] [--only NAME]`.

`--windows` traces the programs in windows of memray instead, hundreds a minute; `--preload jemalloc` or
`tcmalloc_minimal` gives them another allocator.

`--only entering` and `--only field` visit programs by `EnteredProcess`: see there for their options.

Prints a line for each program and exits with 1 if one of them was harmed. A library that a Python lacks is
said to be missing. Programs run two at a time; `faulthandler` shows where a crash happened, and
`PYTHONMALLOC=debug` finds memory that is written to after it was freed.
"""

from __future__ import annotations

import argparse
import ctypes.util
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.harmless import PATIENCE_SECONDS
from tests.harmless.entering import __main__ as entering
from tests.harmless.entering.field import __main__ as field
from tests.support.repository import python_path

ROOT = Path(__file__).parents[2]
GPU = "torch with a GPU"
# By the file: what it needs, and the programs in it.
_FILES = {
    "tensors": (
        "torch",
        ("gradients", "graphs", "storages", "several_threads", "training_thread", "loading", "compiling"),
    ),
    "cuda": (GPU, ("cuda_training", "cuda_streams", "cuda_graphs", "cuda_loading")),
    "tensor_dicts": ("tensordict", ("tensor_dicts",)),
    "arrays": ("numpy", ("arrays",)),
    "tables": ("pandas", ("tables",)),
    "jax_arrays": ("jax", ("jax_arrays",)),
    "worlds": ("Box2D", ("worlds",)),
    "interpreter": (
        "sys",
        (
            *("containers", "instances", "functions", "traced", "signals", "forks", "foreign", "waiting"),
            "recursion",
        ),
    ),
}
# By the name of a program: its file and what it needs.
PROGRAMS = {name: (file, library) for file, (library, names) in _FILES.items() for name in names}
# What C code of torch changes fastest is also read by the readers alone, which come around more often then.
READ_FAST = ("gradients", "graphs", "storages", "training_thread", "cuda_training", "cuda_graphs")
PROFILED = ("traced",)  # by themselves: no window begins there
# For imports, on a loaded machine; a program that hangs later ends itself.
_START_SECONDS = 600


class Run(NamedTuple):
    """One program under one Python."""

    python: str
    name: str
    who: str

    def __str__(self) -> str:
        return self.name if self.who == "all" else f"{self.name} ({self.who})"


def run(one: Run, seconds: float, preload: str = "") -> tuple[int, str]:
    """Run a program; returns its exit code, negative for a signal, and what it printed.

    Args:
        one: what to run.
        seconds: how long it runs.
        preload: a shared library that is loaded before all others, as an allocator is.

    """
    program = f"{PROGRAMS[one.name][0]}.{one.name}"
    arguments = ["-X", "faulthandler", "-m", "tests.harmless.program", program, str(seconds), one.who]
    environment = dict(os.environ, PYTHONMALLOC="debug", PYTHONPATH=_path())
    if preload:
        # The debugging allocator would stand before it.
        environment |= {"LD_PRELOAD": preload, "PYTHONMALLOC": "malloc"}
    try:
        done = subprocess.run(
            [one.python, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_START_SECONDS + seconds + PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return 1, f"did not end within {error.timeout:.0f} s\n{output}"
    return done.returncode, done.stdout.decode(errors="replace")


def _path() -> str:
    return os.pathsep.join(filter(None, [python_path(), os.environ.get("PYTHONPATH")]))


def wanted(pythons: list[str], only: list[str], *, windows: bool) -> Iterator[tuple[Run, str | None]]:
    """The runs, each with what is missing for it, if anything."""
    for python in pythons:
        for name, (_, need) in PROGRAMS.items():
            if (only and name not in only) or (windows and name in PROFILED):
                continue
            needed = [need, "memray"] if windows else [need]
            missing = next((one for one in needed if not has(python, one)), None)
            if windows:
                yield Run(python, name, "windows"), missing
                continue
            for who in ("all", "readers") if name in READ_FAST else ("all",):
                yield Run(python, name, who), missing


def has(python: str, need: str) -> bool:
    """Whether a Python has a module installed, or torch that sees a GPU."""
    found = f"import sys, importlib.util; sys.exit(importlib.util.find_spec({need!r}) is None)"
    if need == GPU:
        found = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([python, "-c", found], capture_output=True, check=False).returncode == 0


def main() -> int:
    """Run what the arguments say; returns the exit code."""
    # These have options of their own.
    for name, visits in (("entering", entering.main), ("field", field.main)):
        if sys.argv[1:3] == ["--only", name]:
            return visits(sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long each program runs")
    parser.add_argument("--only", nargs="*", default=[], choices=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--python", nargs="*", default=[sys.executable], help="interpreters to run it on")
    parser.add_argument("--windows", action="store_true", help="trace them in windows of memray")
    parser.add_argument("--preload", default="", metavar="NAME", help="a shared library, as jemalloc")
    parser.add_argument("--jobs", type=int, default=2, help="programs at the same time")
    arguments = parser.parse_args()
    preload = ctypes.util.find_library(arguments.preload) if arguments.preload else ""
    if preload is None:
        parser.error(f"there is no shared library {arguments.preload}")
    harmed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        started = []
        for one, missing in wanted(arguments.python, arguments.only, windows=arguments.windows):
            if missing is None:
                started.append((one, pool.submit(run, one, arguments.seconds, preload)))
            else:
                print(f"not run  {one.python} {one}: there is no {missing}", flush=True)
        for one, outcome in started:
            code, output = outcome.result()
            reported = next((line for line in output.splitlines() if line.startswith(f"{one.name}: ")), "")
            print(f"{'ok      ' if code == 0 else 'HARMED  '} {one.python} {reported or one}", flush=True)
            if code:
                harmed += 1
                print(f"exit code {code}\n{output[-6000:]}", flush=True)
    print(f"{len(started) - harmed} passed, {harmed} failed")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
