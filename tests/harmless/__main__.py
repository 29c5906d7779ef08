"""Every program for some minutes: `python -m tests.harmless [--seconds 300] [--only NAME ...] [--who WHO]`.

`--who windows` only sets the profile function, hundreds of times a minute. `--only entering` visits programs
by `EnteredProcess`: see there for its options.

Prints a line for each program and exits with 1 if one of them was harmed. A library that Python lacks is
said to be missing. Programs run two at a time; `faulthandler` shows where a crash happened, and
`PYTHONMALLOC=debug` finds memory that is written to after it was freed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harmless import PATIENCE_SECONDS
from tests.harmless.entering import __main__ as entering
from tests.support.repository import python_path

ROOT = Path(__file__).parents[2]
GPU = "torch with a GPU"
# By the file: what it needs, and the programs in it.
FILES = {
    "tensors": ("torch", ("gradients", "graphs", "storages", "several_threads", "loading", "compiling")),
    "cuda": (GPU, ("cuda_training", "cuda_streams", "cuda_graphs", "cuda_loading")),
    "arrays": ("numpy", ("arrays",)),
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
_FILE_OF = {name: file for file, (_, names) in FILES.items() for name in names}
# For imports, on a loaded machine; a program that hangs later ends itself.
_START_SECONDS = 600


def run(file: str, names: Sequence[str], who: str, seconds: float) -> tuple[int, str]:
    """Run programs of one file; returns the exit code, negative for a signal, and what was printed.

    Args:
        file: the file that they are in.
        names: the programs, which run one after the other in one process.
        who: who reads: see `tests.harmless.program`.
        seconds: how long each runs.

    """
    arguments = ["-X", "faulthandler", "-m", "tests.harmless.program", file, str(seconds), who, *names]
    path = os.pathsep.join(filter(None, [python_path(), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=dict(os.environ, PYTHONMALLOC="debug", PYTHONPATH=path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_START_SECONDS + (seconds + PATIENCE_SECONDS) * len(names),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return 1, f"did not end within {error.timeout:.0f} s\n{output}"
    return done.returncode, done.stdout.decode(errors="replace")


def has(need: str) -> bool:
    """Whether Python has a module installed, or torch that sees a GPU."""
    found = f"import sys, importlib.util; sys.exit(importlib.util.find_spec({need!r}) is None)"
    if need == GPU:
        if not Path("/dev/nvidiactl").exists():
            return False  # without the seconds that torch takes
        found = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", found], capture_output=True, check=False).returncode == 0


def main() -> int:
    """Run what the arguments say; returns the exit code."""
    if sys.argv[1:3] == ["--only", "entering"]:  # has options of its own
        return entering.main(sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long each program runs")
    parser.add_argument("--only", nargs="*", default=list(_FILE_OF), choices=list(_FILE_OF), metavar="NAME")
    parser.add_argument("--who", default="all", choices=("all", "readers", "windows", "nothing"))
    parser.add_argument("--jobs", type=int, default=2, help="programs at the same time")
    arguments = parser.parse_args()
    harmed = 0
    missing = {file for file, (need, _) in FILES.items() if not has(need)}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        started = {}
        for name in arguments.only:
            file = _FILE_OF[name]
            if file in missing:
                print(f"not run  {name}: there is no {FILES[file][0]}", flush=True)
            else:
                started[name] = pool.submit(run, file, [name], arguments.who, arguments.seconds)
        for name, outcome in started.items():
            code, output = outcome.result()
            reported = next((line for line in output.splitlines() if line.startswith(f"{name}: ")), name)
            print(f"{'HARMED  ' if code else 'ok      '} {reported}", flush=True)
            if code:
                harmed += 1
                print(f"exit code {code}\n{output[-6000:]}", flush=True)
    print(f"{len(started) - harmed} passed, {harmed} failed")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
