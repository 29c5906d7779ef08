"""A small trainer for the demonstration, which needs only the library.

Its first line of output is its port. A line of standard input makes it leak until a cleanup. It ends with its
input, so it never outlives its parent.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from heapwatch.lifecycle import start
from heapwatch.text.terminal import say

NAME = "demo"
AGENTS = 30
LIMBS = 5
STEPS_PER_SECOND = 30.0
# What each step leaks: so many bodies that a scrape sees them below the first limit or above the last.
BODIES_PER_STEP = 4
STEPS_PER_MEGABYTE = 9


class Arena:
    """The objects of a simulation, without the physics; `leaks` is switched off by a cleanup."""

    def __init__(self) -> None:
        self.leaks = False
        self._spare_limbs: list[object] = []
        self._history: list[bytes] = []

    def bodies(self) -> dict[str, int]:
        """Bodies by type: the ground, the agents, and their limbs with those of dead agents."""
        return {"static": 1, "agent": AGENTS, "dynamic": AGENTS * LIMBS + len(self._spare_limbs)}

    def step(self, number: int) -> None:
        """Leak what a step leaks."""
        if not self.leaks:
            return
        self._spare_limbs += [object() for _ in range(BODIES_PER_STEP)]
        if number % STEPS_PER_MEGABYTE == 0:
            self._history.append(b"\x01" * 1_000_000)

    def clean(self, _action: str) -> dict[str, int]:
        """Remove what has leaked, and leak no more; returns the removed number of each resource."""
        removed = {"bodies": len(self._spare_limbs), "history": len(self._history)}
        self.leaks = False
        self._spare_limbs.clear()
        self._history.clear()
        return removed


def main() -> int:
    """Train until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    arena = Arena()
    with start(NAME, port=0, interval=5.0, profile="walker") as watch:
        watch.bodies(arena.bodies)
        watch.on_cleanup(arena.clean)
        say(watch.port)
        step = 0
        while True:
            if select.select([0], [], [], 1 / STEPS_PER_SECOND)[0]:
                if not os.read(0, 4096):
                    return 0
                arena.leaks = True
            step += 1
            arena.step(step)
            watch.step()


if __name__ == "__main__":
    sys.exit(main())
