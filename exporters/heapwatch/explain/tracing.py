"""The line that makes what stays, seen by tracing allocations for moments at a time.

For what grows, tracing is switched on until something was added to it, a second at most, and the new items
are asked where they were made. While it is on, a program that allocates a lot runs two to three times slower;
so all such moments together are at most a fiftieth of the time. A program that traces by itself is left
alone.
"""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

from heapwatch.explain.sites import Site
from heapwatch.measure.roots import is_user_file

FRAMES = 16
SHARE = 0.02
LONGEST_SECONDS = 1.0
_ADVANCE_SECONDS = 2.0  # may be traced before the share has earned them
_POLL_SECONDS = 0.004
_MOST_TRIES = 4  # for one path


class Tracer:
    """Traces allocations in moments, within a share of the time.

    HEAPWATCH_TRACE=0 switches it off.

    Args:
        clock: monotonic seconds.
        share: of the time, at most.

    Attributes:
        seconds: for which allocations were traced so far.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, share: float = SHARE) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._share = share
        self._began = clock()
        self._tries: Counter[str] = Counter()
        self.enabled = os.environ.get("HEAPWATCH_TRACE", "1") != "0"

    def may_trace(self, path: str) -> bool:
        """Whether the share of the time allows for another moment, and trying again is worth it."""
        allowed = _ADVANCE_SECONDS + self._share * (self._clock() - self._began)
        return (
            self.enabled
            and not tracemalloc.is_tracing()
            and self._tries[path] < _MOST_TRIES
            and self.seconds + LONGEST_SECONDS <= allowed
        )

    def trace(
        self, path: str, length: Callable[[], float | None], newest: Callable[[], list[Any]]
    ) -> Site | None:
        """Where new items of a container are made; None when none came in time, or none was traced.

        Args:
            path: of the container.
            length: its length now.
            newest: its newest items.

        """
        self._tries[path] += 1
        before = length()
        began = self._clock()
        tracemalloc.start(FRAMES)
        try:
            while self._clock() - began < LONGEST_SECONDS:
                time.sleep(_POLL_SECONDS)
                now = length()
                if now is None or before is None or now < before:
                    before = now
                elif now > before:
                    site = _made_at(newest())
                    if site is not None:
                        return site
        finally:
            tracemalloc.stop()
            self.seconds += self._clock() - began
        return None


def _made_at(items: list[Any]) -> Site | None:
    """The innermost line of the user's code by which a newest item, or a part of it, was made."""
    while items:
        stack = [items.pop()]
        seen = 0
        while stack and seen < 30:
            obj = stack.pop(0)
            seen += 1
            trace = tracemalloc.get_object_traceback(obj)
            for frame in reversed(trace or ()):
                if is_user_file(frame.filename):
                    return Site(frame.filename, frame.lineno, "")
            if seen < 10:
                stack += gc.get_referents(obj)[:10]
    return None
