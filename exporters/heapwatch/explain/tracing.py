"""Finds the line that allocates the items of a growing container, in short windows of `tracemalloc`.

A window ends when the container has new items, after a second at most. If items are rarer, it begins shortly
before the next is due. The tracebacks of the new items give the line. A pause of 500 times the length of the
window follows. A program that uses `tracemalloc` itself is not traced.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heapwatch.explain.sites import Site, code_of_class
from heapwatch.explain.statements import SETTING_UP
from heapwatch.measure.introspection.containers import array_bytes
from heapwatch.measure.introspection.instance_values import keeps_values_apart
from heapwatch.measure.introspection.layout import Kind, layout_of
from heapwatch.measure.introspection.roots import is_user_file, is_user_module
from heapwatch.runtime import environment

FRAMES = 25  # a library may allocate many calls below the user's code
# A program that allocates much may run twenty times slower while traced; with pauses it loses less than 5%.
SHARE = 0.002
LONGEST_SECONDS = 1.0
_POLL_SECONDS, _WAITING_POLL_SECONDS = 0.004, 0.02
_LONGEST_WAIT = 5.0  # seconds, for each of two additions
_MOST_TRIES = 4  # periods for one path
_MOST_PARTS = 120
_MOST_BESIDE = 20
_NOT_PARTS: tuple[Kind, ...] = ("atom", "class", "module", "function")
# Bytes before an instance that keeps its attributes apart: two pointers and the collector's own.
_HEADERS = 32


class Tracer:
    """Traces allocations for short periods, within a share of the time.

    HEAPWATCH_TRACE=off switches it off.

    Attributes:
        seconds: total time for which allocations were traced.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._share = SHARE if environment.is_on(environment.TRACE) else 0.0
        self._next = clock()
        self._tries: Counter[str] = Counter()
        self._is_tracing = False

    def may_trace(self, path: str) -> bool:
        """Whether the pause after the last period is over and this path has tries left."""
        return (
            self._share > 0
            and not tracemalloc.is_tracing()
            and self._tries[path] < _MOST_TRIES
            and self._clock() >= self._next
        )

    def trace(
        self,
        path: str,
        length: Callable[[], float | None],
        newest: Callable[[], list[Any]],
        interval: float = 0.0,
    ) -> Site | None:
        """The line that allocates new items of a container; None if it was not seen in time.

        `length` returns its length and `newest` its newest items, of which one is added every `interval`
        seconds or so.
        """
        self._tries[path] += 1
        if interval > LONGEST_SECONDS / 2:
            self._wait_for_next(length, interval)
        before = length()
        began = self._clock()
        if tracemalloc.is_tracing():  # the program has started it meanwhile: to stop it would end its own
            return None
        tracemalloc.start(FRAMES)
        self._is_tracing = True
        try:
            while self._clock() - began < LONGEST_SECONDS:
                time.sleep(_POLL_SECONDS)
                now = length()
                if now is None or before is None or now < before:
                    before = now
                elif now > before:
                    site = made_at(newest())
                    if site is not None:
                        return site
        finally:
            self.end_period()
            took = self._clock() - began
            self.seconds += took
            self._next = began + took + took / self._share
        return None

    def _wait_for_next(self, length: Callable[[], float | None], interval: float) -> None:
        """Wait for an addition and then until shortly before the next, which a period at any time misses."""
        before, until = length(), self._clock() + min(2 * interval, _LONGEST_WAIT)
        while length() == before:
            if self._clock() >= until:
                return
            time.sleep(_WAITING_POLL_SECONDS)
        time.sleep(max(0.0, min(interval, _LONGEST_WAIT) - LONGEST_SECONDS / 2))

    def end_period(self) -> None:
        """Trace no longer; also before a fork, as a child would be traced for ever."""
        if self._is_tracing:
            self._is_tracing = False
            tracemalloc.stop()


def made_at(items: list[Any]) -> Site | None:
    """The line of the user's code that makes such items; the list is emptied.

    For an instance it is the line that constructs it, or else its nearest part. For a plain container it is
    the line that makes most of its bytes: the dict around large arrays weighs nothing.
    """
    lines: Counter[Site | None] = Counter()
    while items:
        item = items.pop()
        is_instance = layout_of(type(item)).kind == "object"
        site = _constructed_at(item) if is_instance else None
        if site is not None:
            return site
        item_lines = _bytes_by_line(item)
        if is_instance and (nearest := next(filter(None, item_lines), None)) is not None:
            return nearest
        lines += item_lines
    return lines.most_common(1)[0][0] if lines else None


def _constructed_at(item: Any) -> Site | None:
    """The line outside of its class that made an instance; None if that was not traced."""
    cls = type(item)
    setting_up: set[tuple[str, int | None]] = set()
    if is_user_module(layout_of(cls).module):
        setting_up = {
            (code.co_filename, line)
            for code in code_of_class(cls)
            if code.co_name in SETTING_UP
            for _, _, line in code.co_lines()
        }
    return _line_of(
        frame for frame in _traceback_of(item) if (frame.filename, frame.lineno) not in setting_up
    )


def _bytes_by_line(item: Any) -> Counter[Site | None]:
    """Bytes of an item's parts by the line that made each part, or else its holder; the nearest parts first.

    Parts whose line is outside the recorded frames count for None.
    """
    nbytes: Counter[Site | None] = Counter()
    pending: deque[tuple[Any, Site | None, bool]] = deque([(item, None, False)])
    visited: set[int] = set()
    while pending and len(visited) < _MOST_PARTS:
        obj, site, is_traced = pending.popleft()
        layout = layout_of(type(obj))
        if id(obj) in visited or layout.kind in _NOT_PARTS:
            continue
        visited.add(id(obj))
        traceback = _traceback_of(obj)
        own_site = _line_of(traceback)
        if own_site is not None:
            site, is_traced = own_site, True
        elif traceback and len(traceback) == tracemalloc.get_traceback_limit():
            site, is_traced = None, True
        if is_traced:
            nbytes[site] += array_bytes(obj, layout) or object.__sizeof__(obj)
        pending += [(part, site, is_traced) for part in gc.get_referents(obj)[:_MOST_BESIDE]]
    return nbytes


def _traceback_of(obj: Any) -> Sequence[tracemalloc.Frame]:
    """Where an object was allocated, the innermost frame last; empty if that was not traced.

    For an instance that keeps its attributes apart, Python 3.11 itself uses a wrong address.
    """
    traceback = tracemalloc.get_object_traceback(obj)
    if traceback is None and _LOOKS_AT_A_WRONG_ADDRESS and keeps_values_apart(type(obj)):
        frames = _frames_at(0, id(obj) - _HEADERS)
        traceback = frames and tracemalloc.Traceback(frames)
    return traceback or ()


def _address_reader() -> Any:
    """`tracemalloc.get_object_traceback` by address; None where this build of Python has no such call."""
    read = getattr(ctypes.pythonapi, "_PyTraceMalloc_GetTraceback", None)
    if read is None:
        return lambda domain, address: None
    read.argtypes, read.restype = (ctypes.c_uint, ctypes.c_size_t), ctypes.py_object
    return read


_LOOKS_AT_A_WRONG_ADDRESS = sys.version_info[:2] == (3, 11)
_frames_at = _address_reader()


def _line_of(traceback: Iterable[tracemalloc.Frame]) -> Site | None:
    for frame in reversed(list(traceback)):
        if is_user_file(frame.filename):
            return Site(frame.filename, frame.lineno, "")
    return None
