"""Counts the bodies of Box2D worlds that the program did not declare."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from heapwatch.explain.places import Place
from heapwatch.measure.introspection.exclusive_reads import Ask
from heapwatch.runtime.sources import NoValue

Found = Callable[[str, Callable[[], float]], None]

_OLDEST_SECONDS = 60.0


class Worlds:
    """Counts bodies of Box2D worlds that the program did not declare: C code keeps them in lists of its own.

    They are counted outside of a step. No body is touched: a proxy that outlives its body reads freed memory.

    Args:
        places: of the worlds, by path.
        ask: runs a read in the thread that calls `watch.step()`, else in the main thread.
        found: told of each path to a world with a function that returns its number of bodies. That function
            raises NoValue when the number is older than a minute: the program has dropped the world, or there
            was no time to count.
        clock: monotonic seconds.

    """

    def __init__(
        self,
        places: Mapping[str, list[Place]],
        ask: Ask,
        found: Found,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._ask = ask
        self._found = found
        self._clock = clock
        self._counts: dict[str, tuple[float, float]] = {}

    def count(self) -> None:
        """Count the bodies at each path; a world that is inside its step keeps its last number."""
        counted: set[int] = set()  # a world that another path leads to counts once
        for path, places in list(self._places.items()):
            found = (place.seek({}) for place in places)
            worlds = [world for world in found if world is not None and id(world) not in counted]
            counted.update(map(id, worlds))
            bodies = self._ask(partial(_bodies, worlds)) if worlds else None
            worlds.clear()
            if bodies is not None:
                is_new = path not in self._counts
                self._counts[path] = self._clock(), bodies
                if is_new:
                    self._found(f"{path}.bodies", partial(self._latest, path))

    def _latest(self, path: str) -> float:
        counted_at, bodies = self._counts[path]
        if self._clock() - counted_at > _OLDEST_SECONDS:
            raise NoValue(f"{path} was not counted for {_OLDEST_SECONDS:.0f} s")
        return bodies


def _bodies(worlds: list[Any]) -> int | None:
    if any(world.locked for world in worlds):
        return None
    return sum(int(world.bodyCount) for world in worlds)
