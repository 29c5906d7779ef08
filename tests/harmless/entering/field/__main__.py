"""Visit programs of the field that wait: `python -m tests.harmless.entering.field [--only kernel ray]`.

Each process is visited several times, by two visitors at once, and by `heapwatch explain`. Then the program
goes on, checks what it gets, and ends. Prints a line for each process; exits with 1 if one was harmed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.harmless.entering import __main__ as states
from tests.harmless.entering.__main__ import Outcome
from tests.harmless.entering.field.cases import CASES, missing_in, pythons
from tests.harmless.entering.field.running import Running
from tests.support.repository import REPOSITORY, python_path

_AT_ONCE = 3  # processes of a program, each with one visitor or two
_EXPLAIN_SECONDS = 5
_VISITOR_SECONDS = 600.0
_EXPLAINED = (0, 2)  # exit codes of `heapwatch explain`: healthy, and a leak


class Row(NamedTuple):
    """One process, or what a program as a whole became."""

    program: str
    process: str
    visited: Outcome
    harmed: str

    def __str__(self) -> str:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in self.visited.refused.items())
        visits = str(self.visited.visits)
        return " | ".join([self.program, self.process, visits, reasons or "0", self.harmed or "no"])


def main(arguments: list[str] | None = None) -> int:
    """Run the programs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES), metavar="NAME")
    parser.add_argument("--python", nargs="*", default=pythons(), help="the first that has the modules")
    parser.add_argument("--visits", type=int, default=5, help="one after the other; 0: the programs alone")
    chosen = parser.parse_args(arguments)
    harmed = 0
    print("program | process | visits | refused | harmed", flush=True)
    for name in chosen.only:
        lacking = {python: missing_in(python, CASES[name]) for python in chosen.python}
        python = min(lacking, key=lambda one: len(lacking[one]))
        if lacking[python]:
            print(f"not run {name}: there is no {', '.join(lacking[python])}", flush=True)
            continue
        for row in run(python, name, chosen.visits):
            harmed += bool(row.harmed)
            print(row, flush=True)
    return 1 if harmed else 0


def run(python: str, name: str, visits: int) -> Iterator[Row]:
    """Start a program, visit its processes, have it go on, and see what became of it."""
    with Running(python, CASES[name]) as program:
        processes = program.processes()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            outcomes = list(pool.map(lambda pid: visited(pid, visits), processes.values()))
        gone = program.gone()
        for (process, pid), outcome in zip(processes.items(), outcomes, strict=True):
            yield Row(name, process, outcome, "has ended" if gone.pop(pid, None) else "")
        for command in gone.values():
            yield Row(name, command, Outcome(), "has ended")
        harm = program.end() if processes else "has not begun"
        yield Row(name, "as a whole", Outcome(), harm)
        if harm:
            print(program.said(), flush=True)


def visited(pid: int, visits: int) -> Outcome:
    """Visit a process so many times, then by two visitors at once, and by the command."""
    if not visits:
        return Outcome()
    outcome = states.visited(pid, visits)
    with ThreadPoolExecutor(2) as pool:
        for one in pool.map(states.visited, [pid] * 2, [2] * 2):
            outcome.add(one)
    command = [sys.executable, "-m", "heapwatch", "explain", str(pid), "--seconds", str(_EXPLAIN_SECONDS)]
    environment = os.environ | {"PYTHONPATH": python_path()}
    done = subprocess.run(
        command,
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_VISITOR_SECONDS,
        check=False,
    )
    if done.returncode in _EXPLAINED:
        outcome.visits += 1
    else:
        outcome.refused[[f"exit code {done.returncode}", *done.stderr.splitlines()][-1]] += 1
    return outcome


if __name__ == "__main__":
    sys.exit(main())
