import collections

from heapwatch.collectors.named_sources import NamedSources
from heapwatch.runtime.sources import Source


def test_a_source_that_fails_costs_its_own_value(failures):
    sources = NamedSources("entities", failures)
    sources.register("good", Source.of(lambda: 1))
    sources.register("bad", Source.of(lambda: 1 / 0))
    assert sources.read(lambda _, value: value) == {"good": 1}
    assert sources.read(lambda _, value: value) == {"good": 1}
    assert failures.counts["entities"] == 2


def test_a_source_that_died_is_counted_once(failures):
    sources = NamedSources("entities", failures)
    food = collections.deque([1])
    sources.register("food", Source.of(food))
    assert sources.read(lambda _, value: len(value)) == {"food": 1}
    del food
    for _ in range(5):
        assert sources.read(lambda _, value: len(value)) == {}
    assert failures.counts["entities"] == 1


def test_sources_are_bounded_and_the_rest_is_counted(failures):
    sources = NamedSources("buffers", failures, limit=3)
    for number in range(10):
        sources.register(f"buffer {number}", Source.of(lambda: 1))
    assert len(sources.read(lambda _, value: value)) == 3
    assert failures.left_out == {"buffers": 7}
