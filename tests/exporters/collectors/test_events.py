from collections import deque

from heapwatch.collectors.events import EventCollector
from heapwatch.runtime.sources import Source
from tests.exporters.exposed import values


class Ecosystem:
    def __init__(self, deaths):
        self.deaths = deaths


def lengths(collector):
    collector.sample()
    families = list(collector.collect())
    return (
        values(families, "trainer_event_list_items", "list"),
        values(families, "trainer_event_list_capacity_items", "list"),
    )


def test_a_deque_declares_its_bound(failures):
    ecosystem = Ecosystem(deque(maxlen=5))
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(lambda: ecosystem.deaths))
    assert lengths(collector) == ({"death": 0}, {"death": 5})
    ecosystem.deaths.extend(range(10))
    assert lengths(collector) == ({"death": 5}, {"death": 5})


def test_an_unbounded_list_has_no_capacity(failures):
    deaths = [1, 2]
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(deaths))
    assert lengths(collector) == ({"death": 2}, {})


def test_a_bounded_deque_that_became_a_list_shows_as_longer_than_its_bound(failures):
    ecosystem = Ecosystem(deque([1], maxlen=5))
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(lambda: ecosystem.deaths))
    lengths(collector)
    ecosystem.deaths = list(range(50))
    assert lengths(collector) == ({"death": 50}, {"death": 5})


def test_another_bound_replaces_the_first(failures):
    ecosystem = Ecosystem(deque([1], maxlen=5))
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(lambda: ecosystem.deaths))
    lengths(collector)
    ecosystem.deaths = deque([1], maxlen=9)
    assert lengths(collector) == ({"death": 1}, {"death": 9})


def test_a_bound_that_was_told_stands_above_what_the_container_says(failures):
    deaths = deque([1], maxlen=5)
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(deaths), capacity=100)
    assert lengths(collector) == ({"death": 1}, {"death": 100})


def test_a_list_that_died_takes_its_bound_with_it(failures):
    deaths = deque([1], maxlen=5)
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(deaths))
    lengths(collector)
    del deaths
    assert lengths(collector) == ({}, {})
