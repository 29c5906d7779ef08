"""Finds the line of the program that takes memory of C code, with short windows of memray.

memray records what is allocated while a window lasts and not freed at its end; another process reads the
record. It replaces the profiling functions of the program's threads meanwhile. So a window begins only where
HEAPWATCH_NATIVE=on asks for it, and not in a program that is profiled or traced already.
"""

from __future__ import annotations

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
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from heapwatch.explain.source.sites import Site
from heapwatch.measure.introspection.roots import is_user_file
from heapwatch.runtime import environment
from heapwatch.runtime.failures import raised

log = logging.getLogger("heapwatch")

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
    """Traces in steps that do not wait: call `step` about once a second, always from one thread.

    Args:
        clock: monotonic seconds.

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

        Args:
            growth: bytes a minute for which a line is wanted; 0 for none.

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
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            with suppress(Exception):
                tracker.__exit__(None, None, None)
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
        return not (done or tracemalloc.is_tracing() or _is_profiled()) and bool(
            importlib.util.find_spec("memray")
        )

    def _begin(self, now: float) -> None:
        import memray

        self._folder = Path(tempfile.mkdtemp(prefix="heapwatch-"))
        tracker = memray.Tracker(self._record(), follow_fork=False)
        tracker.__enter__()
        self.windows += 1
        self._tracker, self._until = tracker, now + WINDOW_SECONDS

    def _end(self, now: float) -> None:
        tracker, self._tracker = self._tracker, None
        tracker.__exit__(None, None, None)
        self._next, self._until = now + PAUSE_SECONDS, now + READ_SECONDS
        size = self._record().stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"a window of {WINDOW_SECONDS:g} s has {size / 1e6:.0f} MB of allocations")
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
        for size, frames in found:
            site = next((Site(file, line, name) for name, file, line in frames if is_user_file(file)), None)
            if site is not None:
                lines[site] += size
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


def _is_profiled() -> bool:
    """Whether the program has a profiler or a trace function, as a debugger has."""
    hooks = (sys.getprofile(), sys.gettrace(), getattr(threading, "_profile_hook", None))
    monitoring = getattr(sys, "monitoring", None)
    tools = [] if monitoring is None else [monitoring.get_tool(tool) for tool in range(6)]
    return any(hook is not None for hook in (*hooks, getattr(threading, "_trace_hook", None), *tools))
