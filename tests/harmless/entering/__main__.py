"""Visit programs in every state of their main thread: `python -m tests.harmless.entering [--python PATH]`.

Each program is visited at random moments: once, five times, twenty times, by two visitors at a time, or by
visitors that are killed. It then has to go on, and to end by itself with its result and its exit code. Prints
a line for each state and Python; exits with 1 if a program was harmed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from tests.harmless.entering.states import (
    ALONE,
    ENDING,
    EXIT_CODE,
    LITTLE_MEMORY,
    NAMES,
    NO_FILE,
    REPLACED,
    RESULT,
    program,
)
from tests.support.repository import REPOSITORY, python_path

# Visits one after the other, and visitors at a time.
MODES = {"once": (1, 1), "five": (5, 1), "twenty": (20, 1), "two": (3, 2)}
KILLED = "killed"
_KILLED_STRIDE = 8  # system calls, from a random one of the first eight on
# How long a program waits at a time: shorter and longer than a visit takes to begin.
PERIODS = (0.5, 3.0, 12.0)
_END_SECONDS = 120.0
_VISITOR_SECONDS = 600.0


@dataclass
class Outcome:
    """What became of one program, or of several."""

    programs: int = 0
    visits: int = 0
    killed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    harmed: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Count another one as well."""
        self.programs += other.programs
        self.visits += other.visits
        self.killed += other.killed
        self.refused += other.refused
        self.harmed += other.harmed

    def __str__(self) -> str:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in self.refused.most_common(4))
        return (
            f"{self.programs} programs, {self.visits} visits, {self.killed} killed visitors,"
            f" {self.refused.total()} refused{f' ({reasons})' if reasons else ''}, {len(self.harmed)} harmed"
        )


def visited(pid: int, count: int, period: float = 0.0) -> Outcome:
    """Visit a process so many times, from any moment of its first wait on; a refused visit is no harm."""
    outcome = Outcome()
    for number in range(count):
        time.sleep(random.uniform(0, 1 if number else period))
        try:
            if number % 2:
                with EnteredProcess(pid) as entered:
                    entered.ask("serve", name="state", host="127.0.0.1", port=0)
                with EnteredProcess(pid) as entered:
                    entered.ask("leave")
            else:
                with EnteredProcess(pid) as entered:
                    entered.ask("explain", name="state")
                    entered.leave()
            outcome.visits += 1
        except CannotEnter as error:
            outcome.refused[str(error).replace(str(pid), "N")] += 1
    return outcome


def killed(pid: int) -> Outcome:
    """Visit a process by visitors that are killed."""
    command = [sys.executable, "-m", "tests.harmless.entering.killed", str(pid), str(_KILLED_STRIDE)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_VISITOR_SECONDS, cwd=REPOSITORY, check=False
    )
    outcome = Outcome(killed=int(done.stdout or 0))
    if done.returncode:
        outcome.harmed.append(f"the killer of visitors ended: {done.stderr[-500:]}")
    return outcome


def run(python: str, state: str, mode: str, period: float) -> Outcome:
    """Start a program, visit it, tell it that the visits are over, and look at its end."""
    with tempfile.TemporaryDirectory(prefix="state-") as folder:
        over = Path(folder) / "over"
        command = [python, "-c", program(state), str(over), str(period), str(os.getpid())]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=_environment(), stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdout is not None
            try:
                said = process.stdout.readline()
                outcome = Outcome()
                if mode == KILLED:
                    outcome.add(killed(process.pid))
                    outcome.add(visited(process.pid, 1))
                else:
                    count, visitors = MODES[mode]
                    with ThreadPoolExecutor(visitors) as pool:
                        pids, counts, periods = ([value] * visitors for value in (process.pid, count, period))
                        for one in pool.map(visited, pids, counts, periods):
                            outcome.add(one)
                early = process.poll() is not None and state != ENDING
                over.touch()
                out, errors = process.communicate(timeout=_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                out, errors = process.communicate()
                early = False
    outcome.programs = 1
    code = process.returncode
    if early or (said, out, errors, code) != ("ready\n", RESULT, "", EXIT_CODE):
        when = "during the visits, " if early else ""
        outcome.harmed.append(f"{mode}, {period:g} s: {when}exit code {code}, {out!r} {errors[-3000:]}")
    return outcome


def _environment() -> dict[str, str]:
    """No module is compiled anew in each program; Python's warning about threads and `fork` is no harm."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONWARNINGS": "ignore::DeprecationWarning"}


def modes_of(state: str, repeated: int) -> Iterator[str]:
    """How often a state is tried in which way."""
    for _ in range(repeated):
        yield "once"
        if state == ENDING:  # a visit meets the end by chance
            yield from ["once"] * 12
        if state != NO_FILE:  # nothing can be imported, nor answered: each visit takes a minute
            yield from ("once", "five", "two")
        if state not in (ALONE, ENDING, NO_FILE, LITTLE_MEMORY, REPLACED):  # of the last, many are refused
            yield from ("twenty", KILLED)


def main(arguments: list[str] | None = None) -> int:
    """Try what the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=[sys.executable], help="interpreters to run them on")
    parser.add_argument("--states", nargs="*", default=list(NAMES), choices=NAMES, metavar="STATE")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="so many times")
    parser.add_argument("--jobs", type=int, default=24, help="programs at the same time, which mostly wait")
    chosen = parser.parse_args(arguments)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [python_path(), os.environ.get("PYTHONPATH")]))
    total = Outcome()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        begun = []
        for python in chosen.python:
            for state in chosen.states:
                runs = [
                    pool.submit(run, python, state, mode, random.choice(PERIODS))
                    for mode in modes_of(state, chosen.repeat)
                ]
                begun.append((python, state, runs))
        for python, state, outcomes in begun:
            of_state = Outcome()
            for future in outcomes:
                of_state.add(future.result())
            print(f"{'HARMED  ' if of_state.harmed else 'ok      '} {python} {state}: {of_state}", flush=True)
            for harm in of_state.harmed[:3]:
                print(f"  {harm}", flush=True)
            total.add(of_state)
    print(f"total: {total}")
    return 1 if total.harmed else 0


if __name__ == "__main__":
    sys.exit(main())
