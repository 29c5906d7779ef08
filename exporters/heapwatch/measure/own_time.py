"""CPU time of the calling thread without the garbage collections that happen to run in it."""

from __future__ import annotations

import gc
import threading
import time


class _Readings(threading.local):
    """Of each thread: the latest reading, and what of it the collector took."""

    collections = 0
    latest = 0.0
    taken = 0.0


_readings = _Readings()


def own_time() -> float:
    """CPU seconds that the calling thread worked for itself; only differences mean something.

    A full collection runs in whichever thread allocates next, and takes as long as the program's heap is
    large: a tenth of a second and more. It would have run without this thread, too. Between two readings with
    such a collection no time passes.
    """
    now = time.thread_time()
    collections = sum(generation["collections"] for generation in gc.get_stats()[1:])
    if collections != _readings.collections:
        _readings.collections = collections
        _readings.taken += now - _readings.latest
    _readings.latest = now
    return now - _readings.taken
