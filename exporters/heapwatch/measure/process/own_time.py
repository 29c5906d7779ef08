"""CPU time of the calling thread without the garbage collections that run in it."""

from __future__ import annotations

import gc
import threading
import time


class _Readings(threading.local):
    """For each thread: the latest reading, and the part of it that the collector used."""

    collections = 0
    latest = 0.0
    collector_seconds = 0.0


_readings = _Readings()


def own_time() -> float:
    """CPU seconds of the calling thread without garbage collections; only differences are meaningful.

    A full collection runs in the thread that happens to allocate next, and takes a tenth of a second or more
    in a large heap. It would also run without this thread. Between two readings with such a collection no
    time passes.
    """
    now = time.thread_time()
    collections = sum(generation["collections"] for generation in gc.get_stats()[1:])
    if collections != _readings.collections:
        _readings.collections = collections
        _readings.collector_seconds += now - _readings.latest
    _readings.latest = now
    return now - _readings.collector_seconds
