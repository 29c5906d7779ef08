import math
import threading
import time

import pytest
from prometheus_client.core import GaugeMetricFamily

from heapwatch.runtime.exposition import CollectionStuck, Exposition, Snapshots


class Reading:
    """A collector of one series, which a test may break."""

    def __init__(self, name, number=1.0):
        self.name = name
        self.number = number
        self.error = None
        self.free = threading.Event()
        self.free.set()

    def collect(self):
        if self.error is not None:
            raise self.error
        assert self.free.wait(30)
        family = GaugeMetricFamily(self.name, "A number.")
        if self.number is not None:
            family.add_metric([], self.number)
        yield family


@pytest.fixture
def exposition(failures, safe_point):
    return Exposition(failures, safe_point, patience=0.2)


def names(exposition):
    return [family.name for family in exposition.collect()]


def test_a_failing_collector_loses_its_own_series_alone(exposition, failures):
    before, broken, after = Reading("before"), Reading("broken"), Reading("after")
    for collector in (before, broken, after):
        exposition.register(collector)
    assert names(exposition) == ["before", "broken", "after"]
    broken.error = OSError("driver fell over")
    assert names(exposition) == ["before", "after"]
    assert failures.counts["broken"] == 1
    broken.error = None
    assert names(exposition) == ["before", "broken", "after"]


def test_a_hanging_collector_is_left_out_until_it_returns(exposition, failures):
    first, hanging, other = Reading("first"), Reading("hanging"), Reading("other")
    for collector in (first, hanging, other):
        exposition.register(collector)
    hanging.free.clear()
    assert names(exposition) == ["first"]
    assert names(exposition) == ["first", "other"]
    assert failures.counts["hanging"] == 1, "it was asked a second time"
    hanging.free.set()
    for thread in threading.enumerate():
        if thread.name == "heapwatch-collect":
            thread.join(10)
    assert names(exposition) == ["first", "hanging", "other"]


@pytest.mark.parametrize("number", [math.nan, math.inf, None])
def test_what_is_not_known_is_absent(exposition, number):
    exposition.register(Reading("reading", number))
    assert names(exposition) == []


def test_all_are_read_where_no_thread_can_be_started(exposition, monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    exposition.register(Reading("first"))
    exposition.register(Reading("second"))
    monkeypatch.setattr(threading.Thread, "start", start)
    assert names(exposition) == ["first", "second"]


def test_who_waits_for_the_collection_of_another_is_told_that_it_hangs(exposition):
    hanging = Reading("hanging")
    exposition._patience = 30
    exposition.register(hanging)
    hanging.free.clear()
    snapshots = Snapshots(exposition)
    first = threading.Thread(target=snapshots.take, args=(0.0,))
    first.start()
    while not snapshots._collecting.locked():
        time.sleep(0.001)
    with pytest.raises(CollectionStuck, match="a collector has been running for"):
        snapshots.take(0.01)
    hanging.free.set()
    first.join(30)
    assert [family.name for family in snapshots.take(1.0).families] == ["hanging"]
