"""How a program waits until it was visited often enough."""

import json
import os
import random
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE_SECONDS = 60


def told(seconds: float) -> bool:
    """Whether the program is told within this time that the visits are over: its standard input ends."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def show(processes: Mapping[str, int]) -> None:
    print(json.dumps(processes), flush=True)


def wait(processes: Mapping[str, int], work: Callable[[], object]) -> None:
    """Say which processes wait, and work every few seconds until the visits are over, and once after that."""
    work()
    show(processes)
    while not told(random.uniform(2, 8)):
        work()
    work()


def numbered(name: str, pids: Sequence[int]) -> dict[str, int]:
    return {f"{name} {number}": pid for number, pid in enumerate(pids, 1)}


def children(pid: int) -> list[int]:
    return [int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in _children(task)]


def child(pid: int, words: str) -> int:
    """The child process whose command line has these words."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        for one in children(pid):
            if words in Path(f"/proc/{one}/cmdline").read_text().replace("\0", " "):
                return one
        time.sleep(0.1)
    raise SystemExit(f"process {os.getpid()} has no child with {words}")


def _children(task: Path) -> list[str]:
    with suppress(OSError):  # the thread has ended
        return (task / "children").read_text().split()
    return []
