"""Finds the line that allocates what grows, with short windows in which allocations are traced.

For the items of a growing container `tracemalloc` is switched on until it gets new items, for a second at
most. Where they are rarer, it starts shortly before the next is due. Then the traceback of the new items is
read. A pause of 500 times the length of the window follows. If the program itself uses `tracemalloc`, nothing
is traced.

For memory of C code memray records what is allocated while a window lasts and not freed at its end; another
process reads the record. During a window memray replaces the profiling functions of the program's threads. So
one begins only where HEAPWATCH_NATIVE=on asks for it, and not in a program that is profiled or traced anyway.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heapwatch.explain.sites import Site, code_of_class
from heapwatch.explain.statements import SETTING_UP
from heapwatch.measure.introspection.containers import array_bytes
from heapwatch.measure.introspection.instance_values import keeps_values_apart
from heapwatch.measure.introspection.layout import Kind, layout_of
from heapwatch.measure.introspection.roots import is_user_file, is_user_module
from heapwatch.runtime import environment
from heapwatch.runtime.failures import raised
from heapwatch.text.numbers import size

log = logging.getLogger("heapwatch")

FRAMES = 25  # a library may allocate many calls below the user's code
# A program that allocates much may run twenty times slower while traced; with pauses it loses less than 5%.
SHARE = 0.002
LONGEST_SECONDS = 1.0
_INTERVALS = 2.0  # longest period, as a multiple of the usual time between two additions
_SHORTEST_SECONDS = 0.05
_POLL_SECONDS = 0.004
_WAITING_POLL_SECONDS = 0.02
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
        interval: float = LONGEST_SECONDS,
    ) -> Site | None:
        """The line that allocates new items of a container; None if it was not seen in time.

        `length` returns its length and `newest` its newest items, of which one is added every `interval`
        seconds or so.
        """
        self._tries[path] += 1
        longest = LONGEST_SECONDS
        if self._tries[path] == 1:  # after that, many items may come at once, at longer intervals
            longest = min(LONGEST_SECONDS, max(_SHORTEST_SECONDS, _INTERVALS * interval))
        if interval > LONGEST_SECONDS / _INTERVALS:
            self._wait_for_next(length, interval)
        before = length()
        began = self._clock()
        if tracemalloc.is_tracing():  # the program has started it meanwhile: to stop it would end its own
            return None
        tracemalloc.start(FRAMES)
        self._is_tracing = True
        try:
            while self._clock() - began < longest:
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

    def end_period(self) -> None:
        """Trace no longer; also before a fork, as a child would be traced for ever."""
        if self._is_tracing:
            self._is_tracing = False
            tracemalloc.stop()

    def _wait_for_next(self, length: Callable[[], float | None], interval: float) -> None:
        """Wait for an addition and then until shortly before the next, which a period at any time misses."""
        before, until = length(), self._clock() + min(_INTERVALS * interval, _LONGEST_WAIT)
        while length() == before:
            if self._clock() >= until:
                return
            time.sleep(_WAITING_POLL_SECONDS)
        time.sleep(max(0.0, min(interval, _LONGEST_WAIT) - LONGEST_SECONDS / 2))


def made_at(items: list[Any]) -> Site | None:
    """The line of the user's code that makes such items; the list is emptied.

    Of an instance it is the line that constructs it, or what is next to it. Of a plain container it is the
    line that makes most of its bytes: the dict around large arrays weighs nothing.
    """
    lines: Counter[Site | None] = Counter()
    while items:
        item = items.pop()
        instance = layout_of(type(item)).kind == "object"
        site = _constructed_at(item) if instance else None
        if site is not None:
            return site
        made = _bytes_by_line(item)
        if instance and (nearest := next(filter(None, made), None)) is not None:
            return nearest
        lines += made
    return lines.most_common(1)[0][0] if lines else None


def _constructed_at(item: Any) -> Site | None:
    """The line outside of its class that made an instance; None where that was not traced."""
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
    """Bytes of an item's parts by the line that made each, or else what holds it; the nearest parts first.

    What was made by a line that is not among the frames kept counts for None.
    """
    made: Counter[Site | None] = Counter()
    stack: deque[tuple[Any, Site | None, bool]] = deque([(item, None, False)])
    seen: set[int] = set()
    while stack and len(seen) < _MOST_PARTS:
        obj, site, known = stack.popleft()
        layout = layout_of(type(obj))
        if id(obj) in seen or layout.kind in _NOT_PARTS:
            continue
        seen.add(id(obj))
        traceback = _traceback_of(obj)
        here = _line_of(traceback)
        if here is not None:
            site, known = here, True
        elif traceback and len(traceback) == tracemalloc.get_traceback_limit():
            site, known = None, True
        if known:
            made[site] += array_bytes(obj, layout) or object.__sizeof__(obj)
        stack += [(part, site, known) for part in gc.get_referents(obj)[:_MOST_BESIDE]]
    return made


def _traceback_of(obj: Any) -> Sequence[tracemalloc.Frame]:
    """Where an object was allocated, the innermost frame last; empty where that was not traced.

    Python 3.11 itself looks for an instance that keeps its attributes apart at a wrong address.
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


WINDOW_SECONDS = 3.0
PAUSE_SECONDS = 60.0
READ_SECONDS = 30.0
MOST_BYTES = 200_000_000  # of a record: a program that allocates more in a window is not traced again
_ENOUGH = 3  # windows with an answer
_MOST_WINDOWS = 6
# Of the growth in the time of a window. An allocator that takes memory from the system in large pieces takes
# none in most windows; what is left then are small allocations of other lines.
_LEAST_SHARE = 0.25
# A program of its own, so that reading takes no memory of the trainer. Its arguments are the record and the
# folder where memray is installed. It prints the largest allocations that stay, as a JSON list of
# `[bytes, [[function, file, line], ...]]`, the innermost function first.
_READ_RECORD = """
import json, sys
sys.path.append(sys.argv[2])
import memray

records = memray.FileReader(sys.argv[1]).get_leaked_allocation_records(merge_threads=True)
largest = sorted(records, key=lambda record: -record.size)[:20]
print(json.dumps([(record.size, record.stack_trace(40)) for record in largest]))
"""


class NativeTracer:
    """Traces memory of C code with memray, in steps that do not wait.

    Call `step` about once a second, always from one thread.

    Attributes:
        site: the line to which most of the bytes of all windows belong; None if unknown.
        windows: number of windows so far.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.enabled = environment.is_on(environment.NATIVE, usual=False)
        self.site: Site | None = None
        self.windows = 0
        self._clock = clock
        self._next = float("-inf")
        self._until = 0.0
        self._answers = 0
        self._least = 0.0
        self._lines: Counter[Site] = Counter()
        self._tracker: Any = None
        self._reader: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    def step(self, growth: float) -> None:
        """Begin a window if memory of C code grows and one is due, end it, or take what was read of it.

        A line is wanted for `growth` bytes a minute, unless that is 0.
        """
        try:
            self._step(growth)
        except Exception as error:
            self.enabled = False
            self.stop()
            log.warning("heapwatch: memory of C code is not traced any more: %s", raised(error))

    def abandon(self) -> None:
        """In a forked child: the window, which memray does not follow, and its record are the parent's."""
        self.enabled = False
        self._tracker = self._reader = self._folder = None

    def stop(self) -> None:
        """End a window that lasts, without its result."""
        if self._tracker is not None:
            with suppress(Exception):
                self._leave()
        self._drop_record()

    def _step(self, growth: float) -> None:
        now = self._clock()
        if self._tracker is not None:
            if now >= self._until:
                self._end(now)
        elif self._reader is not None:
            self._take(now)
        elif growth > 0 and self.enabled and now >= self._next and self._may_trace():
            self._least = _LEAST_SHARE * growth * WINDOW_SECONDS / 60
            self._begin(now)

    def _may_trace(self) -> bool:
        done = self._answers >= _ENOUGH or self.windows >= _MOST_WINDOWS
        return not (done or tracemalloc.is_tracing() or is_profiled()) and bool(
            importlib.util.find_spec("memray")
        )

    def _begin(self, now: float) -> None:
        import memray

        self._folder = Path(tempfile.mkdtemp(prefix="heapwatch-"))
        # By `write`: mapped records crash programs with several threads, and any where the disk is full.
        record = memray.FileDestination(self._record(), buffered=True)
        tracker = memray.Tracker(destination=record, follow_fork=False)
        tracker.__enter__()
        self.windows += 1
        self._tracker, self._until = tracker, now + WINDOW_SECONDS

    def _leave(self) -> None:
        tracker, self._tracker = self._tracker, None
        tracker.__exit__(None, None, None)

    def _end(self, now: float) -> None:
        self._leave()
        self._next, self._until = now + PAUSE_SECONDS, now + READ_SECONDS
        written = self._record().stat().st_size
        if written > MOST_BYTES:
            raise ValueError(f"a window of {WINDOW_SECONDS:g} s has {size(written)} of allocations")
        import memray

        arguments = [self._record(), Path(memray.__file__).parents[1]]
        # To a file: a pipe that nobody empties would stop the reader.
        with self._lines_file().open("wb") as lines:
            self._reader = subprocess.Popen(
                [sys.executable, "-I", "-c", _READ_RECORD, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=subprocess.DEVNULL,
            )

    def _take(self, now: float) -> None:
        assert self._reader is not None
        code = self._reader.poll()
        if code is None and now < self._until:
            return
        if code != 0:
            took = f"ended with {code}" if code is not None else f"took more than {READ_SECONDS:g} s"
            raise ValueError(f"reading the record of memray {took}")
        found = json.loads(self._lines_file().read_bytes())
        self._drop_record()
        lines: Counter[Site] = Counter()
        for nbytes, frames in found:
            site = next((Site(file, line, name) for name, file, line in frames if is_user_file(file)), None)
            if site is not None:
                lines[site] += nbytes
        if lines and lines.total() >= self._least:
            self._lines.update(lines)
            self._answers += 1
            self.site = self._lines.most_common(1)[0][0]

    def _lines_file(self) -> Path:
        return self._record().with_name("lines")

    def _record(self) -> Path:
        assert self._folder is not None
        return self._folder / "record"

    def _drop_record(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and reader.poll() is None:
            reader.kill()
            with suppress(subprocess.TimeoutExpired):
                reader.wait(1.0)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def is_profiled() -> bool:
    """Whether the program has a profiler or a trace function, as a debugger has."""
    hooks = (sys.getprofile(), sys.gettrace(), getattr(threading, "_profile_hook", None))
    monitoring = getattr(sys, "monitoring", None)
    tools = [] if monitoring is None else [monitoring.get_tool(tool) for tool in range(6)]
    return any(hook is not None for hook in (*hooks, getattr(threading, "_trace_hook", None), *tools))
