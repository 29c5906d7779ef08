"""Runs programs of one file under watch: `python -m tests.harmless.program FILE SECONDS WHO NAME ...`.

WHO says who reads: `all` is usual; `readers` are the readers of single objects alone, which then come around
most often; `windows` are windows of the profile function, one after the other; with `nothing` the programs
show that they are sound by themselves. Exits with 0 if the programs ran through, they were read, and nothing
was kept alive.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any

import heapwatch
from tests.harmless import PATIENCE_SECONDS
from tests.harmless.readers import Readers

# How often threads take turns, in seconds: the interpreter's default is a thousand times as long.
SWITCH_SECONDS = 5e-6
_LONGER_SECONDS = 60

# What the program holds: reachable from a global name, as in a script.
held: dict[str, Any] = {}
# Objects that the program has dropped.
dropped: deque[weakref.ref[Any]] = deque(maxlen=2000)
_failures: list[str] = []


def _failed(arguments: Any) -> None:
    _failures.append(f"{arguments.exc_type.__name__} in {arguments.thread}: {arguments.exc_value}")


def _unraisable(arguments: Any) -> None:
    where = f"{arguments.err_msg} {object.__repr__(arguments.object)}"
    _failures.append(f"{arguments.exc_type.__name__}: {arguments.exc_value} ({where})")


def _kept(obj: object) -> str:
    """What an object is, and what refers to it."""
    holders = [one for one in gc.get_referrers(obj) if one is not sys._getframe(1)]
    texts = [f"{type(one).__name__} {getattr(one, 'f_code', '')}".strip() for one in holders]
    return f"{type(obj).__name__} by {', '.join(texts) or 'no object'}"


def run(file: str, name: str, seconds: float, who: str) -> bool:
    """Run a program for this long; whether it was harmed, of which it prints how."""
    watch = heapwatch.Watch(name)
    module = importlib.import_module(f"tests.harmless.programs.{file}")
    gc.freeze()  # a census of what the libraries hold would take most of the time
    steps = getattr(module, name)(held, dropped, watch)
    next(steps)  # imports what the program does not have at its top
    faulthandler.dump_traceback_later(seconds + PATIENCE_SECONDS, exit=True)
    sys.setswitchinterval(SWITCH_SECONDS)
    readers = Readers(watch, held)
    readers.start(who)
    count, end = 1, time.monotonic() + seconds
    # On a busy machine it goes on until it has been read.
    while (now := time.monotonic()) < end or (now < end + _LONGER_SECONDS and readers.few(who)):
        next(steps)
        count += 1
    readers.stop()
    steps.close()
    del steps  # some versions of Python keep what a closed generator refers to
    sys.setswitchinterval(0.005)
    held.clear()
    gc.collect()
    gc.collect()
    kept = [_kept(obj) for reference in dropped if (obj := reference()) is not None]
    print(f"{name}: {count} steps, {readers.told()}, {len(dropped)} dropped, {len(kept)} of them kept")
    problems = [*_failures, *readers.problems(who)]
    if kept:
        problems.append(f"kept alive: {', '.join(sorted(set(kept)))}")
    for problem in problems[:10]:
        print(f"  {problem}")
    sys.stdout.flush()
    dropped.clear()
    _failures.clear()
    return bool(problems)


def main(file: str, seconds: str, who: str, *names: str) -> int:
    """Run the programs one after the other; returns the exit code."""
    threading.excepthook = _failed
    sys.unraisablehook = _unraisable
    harmed = [name for name in names if run(file, name, float(seconds), who)]
    return 1 if harmed else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.modules["tests.harmless.program"] = sys.modules["__main__"]
    code = main(*sys.argv[1:])
    os._exit(code)  # threads of libraries may wait for ever
