"""Visit programs of the field that wait: `python -m tests.harmless.entering.field [--only kernel ray]`.

Each process is visited several times, by two visitors at once, and by `heapwatch explain`. Then the program
goes on, checks what it gets, and ends. Prints a line for each process; exits with 1 if one was harmed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.harmless.entering.field.cases import CASES, missing_in, pythons
from tests.harmless.entering.field.running import Running
from tests.support.repository import REPOSITORY, python_path

_AT_ONCE = 3  # processes of a program, each with one visitor or two
_EXPLAIN_SECONDS = 5
_VISITOR_SECONDS = 600.0
_EXPLAINED = (0, 2)  # exit codes of `heapwatch explain`: healthy, and a leak
_BEFORE_REASON = re.compile(r"^(heapwatch: )?(process \d+ )?")


class Row(NamedTuple):
    """One process, or what a program as a whole became."""

    program: str
    process: str
    visits: int
    refused: Counter[str]
    harmed: str

    def __str__(self) -> str:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in self.refused.items())
        return " | ".join([self.program, self.process, str(self.visits), reasons or "0", self.harmed or "no"])


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
            refusals = list(pool.map(lambda pid: visited(pid, visits), processes.values()))
        gone = program.gone()
        for (process, pid), refused in zip(processes.items(), refusals, strict=True):
            reasons = Counter(_BEFORE_REASON.sub("", reason) for reason in refused if reason)
            harm = "has ended" if gone.pop(pid, None) else ""
            yield Row(name, process, refused.count(""), reasons, harm)
        for command in gone.values():
            yield Row(name, command, 0, Counter(), "has ended")
        harm = program.end() if processes else "has not begun"
        yield Row(name, "as a whole", 0, Counter(), harm)
        if harm:
            print(program.said(), flush=True)


def visited(pid: int, visits: int) -> list[str]:
    """For each visit of a process nothing, or the reason why it was refused."""
    if not visits:
        return []
    found = _ended(_visitor(pid, visits))
    for visitor in [_visitor(pid, 2), _visitor(pid, 2)]:
        found += _ended(visitor)
    return [*found, _explained(pid)]


def _started(*arguments: str) -> subprocess.Popen[str]:
    # PYTHONPATH comes first: with it, the visits can be those of another version.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), python_path()]))
    command = [sys.executable, "-m", *arguments]
    environment = os.environ | {"PYTHONPATH": path}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True)


def _visitor(pid: int, visits: int) -> subprocess.Popen[str]:
    return _started("tests.harmless.entering.field.visitor", str(pid), str(visits))


def _ended(visitor: subprocess.Popen[str]) -> list[str]:
    said, failed = visitor.communicate(timeout=_VISITOR_SECONDS)
    return [*said.splitlines(), *failed.splitlines()[-1:]]


def _explained(pid: int) -> str:
    command = _started("heapwatch", "explain", str(pid), "--seconds", str(_EXPLAIN_SECONDS))
    _, failed = command.communicate(timeout=_VISITOR_SECONDS)
    said = [f"exit code {command.returncode}", *failed.splitlines()]
    return "" if command.returncode in _EXPLAINED else said[-1]


if __name__ == "__main__":
    sys.exit(main())
