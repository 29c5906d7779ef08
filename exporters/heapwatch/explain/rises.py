"""The user's function in which resident memory rises, seen in short windows of the main thread.

In a window the main thread has a profile function, which reads the resident memory at each call and return.
A rise above all that was read before belongs to the line of the user's code that runs then. A program that is
profiled or traced itself has no window.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from heapwatch.explain.sites import Site, user_line
from heapwatch.explain.tracing import SHARE
from heapwatch.measure.introspection.roots import is_user_file
from heapwatch.runtime import environment
from heapwatch.runtime.failures import must_propagate

_SECONDS, _PAUSE_SECONDS = 3.0, 30.0
_MOST_EVENTS, _EVENT_SECONDS = 50_000, 1e-5
_LEAST_SHARE = 0.5  # of the rises, for the function with most of them
_LEAST_BYTES = 200_000


class Rises:
    """Windows in which rises are seen, within a share of the time; HEAPWATCH_TRACE=off switches them off.

    Args:
        ask: runs a function in the main thread.
        resident: the resident bytes of now.
        clock: monotonic seconds.

    """

    def __init__(
        self,
        ask: Callable[[Callable[[], Any]], Any],
        resident: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._resident = resident
        self._clock = clock
        self._enabled = environment.is_on(environment.TRACE)
        self._until = float("-inf")
        self._events = self._highest = 0
        self._lines: Counter[Site] = Counter()
        self._last = (0, 0)  # of the last event the id of its code, and its line

    @property
    def site(self) -> Site | None:
        """The line with most rises in the function with most of them; None if that is not clear."""
        functions: Counter[str] = Counter()
        for line, risen in self._lines.items():
            functions[line.function] += risen
        ((first, most),) = functions.most_common(1) or [("", 0)]
        if most < max(_LEAST_BYTES, _LEAST_SHARE * functions.total()):
            return None
        return max((one for one in self._lines if one.function == first), key=self._lines.__getitem__)

    def step(self, growth: float) -> None:
        """Begin a window if memory that is not Python's grows, in bytes a minute, and one is due."""
        now, pause = self._clock(), max(_PAUSE_SECONDS, self._events * _EVENT_SECONDS / SHARE)
        if growth > 0 and self._enabled and now >= self._until + pause and not is_profiled():
            self._until, self._events, self._highest = now + _SECONDS, 0, self._resident()
            self._ask(self._begin)

    def stop(self) -> None:
        """End a window with the next call of the main thread."""
        self._until = float("-inf")

    def _begin(self) -> None:
        if sys.getprofile() is None:  # the program may have begun to profile itself meanwhile
            sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_name == "<genexpr>":  # one event for each item
            return
        self._events += 1
        try:
            self._add(frame, event, self._resident())
            is_over = self._events > _MOST_EVENTS or self._clock() > self._until
        except Exception as error:
            if must_propagate(error):  # a signal handler of the program has raised it here
                raise
            is_over = True
        if is_over:
            sys.setprofile(None)

    def _add(self, frame: FrameType, event: str, resident: int) -> None:
        risen, self._highest = resident - self._highest, max(resident, self._highest)
        (code, line), self._last = self._last, (id(frame.f_code), frame.f_lineno)
        site = user_line(frame) if risen > 0 else None
        if site is None:
            return
        # A call by ctypes has no event: memory rises after that of an argument, and is seen at the next one.
        if event != "c_return" and code == id(frame.f_code) and is_user_file(frame.f_code.co_filename):
            site = site._replace(line=line)
        self._lines[site] += risen


def is_profiled() -> bool:
    """Whether the program has a profiler or a trace function, as a debugger has."""
    hooks = (sys.getprofile(), sys.gettrace(), getattr(threading, "_profile_hook", None))
    monitoring = getattr(sys, "monitoring", None)
    tools = [] if monitoring is None else [monitoring.get_tool(tool) for tool in range(6)]
    return any(hook is not None for hook in (*hooks, getattr(threading, "_trace_hook", None), *tools))
