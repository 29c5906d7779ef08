"""A small trainer for the demonstration. It needs only the library, and leaks on request until a cleanup.

Its first line of output is its port. Each line of standard input sets the leaks, as JSON: units per minute of
`dynamic` (bodies), `food` and `memory` (MB). It ends with its input, so it never outlives its parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from heapwatch.lifecycle import start
from heapwatch.runtime.plain_text import say

NAME = "demo"
AGENTS = 30
LIMBS = 5
FOOD = 6
STEPS_PER_SECOND = 30.0
STEPS_PER_GENERATION = 1800


class Arena:
    """The objects of a simulation, without the physics.

    Attributes:
        leaks: units per minute of each leak that is on.

    """

    def __init__(self) -> None:
        self.leaks: dict[str, float] = {}
        self.food: list[float] = [0.0] * FOOD
        self._spare_limbs: list[object] = []
        self._history: list[bytes] = []
        self._owed: dict[str, float] = {}

    def bodies(self) -> dict[str, int]:
        """Bodies by type: the ground, the agents, and their limbs with those of dead agents."""
        return {"static": 1, "agent": AGENTS, "dynamic": AGENTS * LIMBS + len(self._spare_limbs)}

    def leak(self, seconds: float) -> None:
        """Leak for a time of `seconds`."""
        for name, rate in self.leaks.items():
            owed = self._owed.get(name, 0.0) + rate * seconds / 60
            self._owed[name] = owed % 1
            for _ in range(int(owed)):
                if name == "dynamic":
                    self._spare_limbs.append(object())
                elif name == "food":
                    self.food.append(0.0)
                elif name == "memory":
                    self._history.append(b"\x01" * 1_000_000)

    def clean(self, _action: str) -> dict[str, int]:
        """Remove what has leaked, and leak no more; returns the removed number of each resource."""
        self.leaks = {}
        removed = {
            "bodies": len(self._spare_limbs),
            "food_sources": max(0, len(self.food) - FOOD),
            "history": len(self._history),
        }
        self._spare_limbs.clear()
        self._history.clear()
        del self.food[FOOD:]
        return removed


def main() -> int:
    """Train until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    arena = Arena()
    with start(NAME, port=0, interval=5.0, profile="walker") as watch:
        watch.bodies(arena.bodies)
        watch.entities("food_sources", lambda: arena.food)
        watch.on_cleanup(arena.clean)
        say(watch.port)
        step, before = 0, time.monotonic()
        while True:
            ready, _, _ = select.select([0], [], [], 1 / STEPS_PER_SECOND)
            if ready:
                line = os.read(0, 4096)
                if not line:
                    return 0
                arena.leaks = json.loads(line.splitlines()[-1])
            now = time.monotonic()
            arena.leak(now - before)
            before = now
            watch.step()
            step += 1
            if step % STEPS_PER_GENERATION == 0:
                watch.progress("generation")


if __name__ == "__main__":
    sys.exit(main())
