import pytest

from heapwatch.collectors.entities import EntityCollector
from heapwatch.runtime.sources import Source
from tests.exporters.exposed import values


def counts(collector):
    return values(collector.collect(), "trainer_entities", "type")


def test_containers_and_numbers(failures):
    food = [1, 2, 3]
    collector = EntityCollector(failures, 1.0)
    collector.count("food_sources", Source.of(food))
    collector.count("obstacles", Source.of(lambda: 7))
    assert counts(collector) == {}
    collector.sample()
    assert counts(collector) == {"food_sources": 3, "obstacles": 7}
    food.clear()
    collector.sample()
    assert counts(collector) == {"food_sources": 0, "obstacles": 7}


@pytest.mark.parametrize("lie", [None, -1, float("nan"), "many", True])
def test_a_source_that_lies_is_absent_and_counted(failures, lie):
    collector = EntityCollector(failures, 1.0)
    collector.count("food_sources", Source.of(lambda: lie))
    collector.sample()
    assert counts(collector) == {}
    assert failures.counts["entities"] == 1


def test_a_dict_that_changes_while_it_is_read_is_counted_and_comes_back(failures):
    robots = {1: "a", 2: "b"}

    def alive():
        for robot in robots:
            robots[robot + 10] = "spawned"
        return len(robots)

    collector = EntityCollector(failures, 1.0)
    collector.count("robots", Source.of(alive))
    collector.sample()
    assert counts(collector) == {}
    assert failures.counts["entities"] == 1


def test_too_many_types_are_added_up(failures):
    collector = EntityCollector(failures, 1.0)
    for number in range(100):
        collector.count(f"agent {number}", Source.of(lambda number=number: number))
    collector.sample()
    found = counts(collector)
    assert len(found) == 65
    assert sum(found.values()) == sum(range(100))
    assert failures.left_out["entities"] == 36
