"""Time that the garbage collector takes in a thread is not the thread's own."""

from __future__ import annotations

import gc
import time

import pytest

from heapwatch.measure.process import own_time as module
from heapwatch.measure.process.own_time import own_time


@pytest.fixture
def clock(monkeypatch):
    """The thread's CPU time and the number of full collections, as they are set."""
    state = {"now": time.thread_time() + 1e3, "collections": 10**9}
    monkeypatch.setattr(module.time, "thread_time", lambda: state["now"])
    monkeypatch.setattr(
        module.gc, "get_stats", lambda: [{"collections": 7}, {"collections": state["collections"]}]
    )
    own_time()
    return state


def test_work_counts_and_a_full_collection_does_not(clock):
    began = own_time()
    clock["now"] += 0.25
    assert own_time() - began == pytest.approx(0.25)
    clock["now"] += 0.36
    clock["collections"] += 1
    assert own_time() - began == pytest.approx(0.25)
    clock["now"] += 0.02
    assert own_time() - began == pytest.approx(0.27)


def test_a_real_collection_is_seen():
    before = own_time()
    gc.collect()
    assert own_time() == before
