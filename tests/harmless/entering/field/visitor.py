"""Visits a process: `visitor PID VISITS`. Prints a line for each visit, empty or why it was refused."""

from __future__ import annotations

import random
import sys
import time

import psutil

from heapwatch.entering.entered_process import CannotEnter, EnteredProcess


def visit(pid: int) -> str:
    """Serve and leave, at some moment; the reason where one of the two was refused."""
    try:
        time.sleep(random.uniform(0, 2))
        with EnteredProcess(pid) as entered:
            entered.ask("serve", name="field", host="127.0.0.1", port=0)
        time.sleep(random.uniform(0, 1))
        with EnteredProcess(pid) as entered:
            entered.ask("leave")
    except CannotEnter as error:
        return str(error)
    return ""


def main(pid: int, visits: int) -> None:
    """Visit as often, or until the process has ended."""
    for _ in range(visits):
        print(visit(pid), flush=True)
        if not psutil.pid_exists(pid):
            return


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
