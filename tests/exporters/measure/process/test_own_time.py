"""Time that the garbage collector takes in a thread is not the thread's own."""

from __future__ import annotations

import gc

from heapwatch.measure.process.own_time import own_time


def test_a_real_collection_is_seen():
    before = own_time()
    gc.collect()
    assert own_time() == before
