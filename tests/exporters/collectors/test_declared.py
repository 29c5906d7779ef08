from collections import deque

import numpy as np
import pytest
import torch

from heapwatch.collectors.declared import (
    EntityCollector,
    EventCollector,
    NamedSources,
    ObjectCollector,
    SizeCollector,
)
from heapwatch.collectors.readings import Readings
from heapwatch.runtime.labels import MAX_NAMES
from heapwatch.runtime.sources import NoValue, Source


def read(collector):
    collector.sample()
    return Readings(collector.collect())


def held(obj):
    """A source that keeps its object."""
    return Source.of(lambda: obj)


def raising(error):
    def read():
        raise error

    return Source.of(read)


def test_sources_that_fail_die_or_have_no_value(failures):
    """Without a value at the moment is a world that was dropped, or that there was no time to count."""
    sources, food = NamedSources("entities", failures), deque([1])
    sources.register("good", Source.of(lambda: [1, 2]))
    sources.register("world", raising(NoValue()))
    sources.register("food", Source.of(food))
    assert sources.read(lambda _, value: len(value)) == {"good": 2, "food": 1}
    assert "entities" not in failures.counts
    del food
    for _ in range(5):
        assert sources.read(lambda _, value: len(value)) == {"good": 2}
    assert failures.counts["entities"] == 1
    sources.register("bad", raising(ZeroDivisionError()))
    for _ in range(2):
        assert sources.read(lambda _, value: len(value)) == {"good": 2}
    assert failures.counts["entities"] == 3
    broken = []
    sources.register("flaky", Source.of(lambda: 1 / 0 if broken else [1]))
    for broken[:], there in (([], True), ([1], False), ([], True)):
        assert ("flaky" in sources.read(lambda _, value: len(value))) is there


def test_sources_are_bounded_and_that_is_logged_once(failures, caplog):
    sources = NamedSources("buffers", failures)
    for number in range(MAX_NAMES + 5):
        sources.register(f"buffer {number}", Source.of(lambda: 1))
    assert len(sources.read(lambda _, value: value)) == MAX_NAMES
    assert len(caplog.records) == 1


@pytest.fixture
def entities(failures):
    return EntityCollector(failures, interval=1.0)


def test_containers_and_numbers(entities):
    food = [1, 2, 3]
    entities.count("food_sources", Source.of(food))
    entities.count("obstacles", Source.of(lambda: 7))
    assert Readings(entities.collect()).by("trainer_entities", "type") == {}
    assert read(entities).by("trainer_entities", "type") == {"food_sources": 3, "obstacles": 7}
    food.clear()
    assert read(entities).by("trainer_entities", "type") == {"food_sources": 0, "obstacles": 7}


def changed_while_counted():
    robots = {1: "a", 2: "b"}
    for robot in robots:
        robots[robot + 10] = "spawned"
    return len(robots)


@pytest.mark.parametrize(
    "source", [*(lambda count=count: count for count in (None, -1, "many")), changed_while_counted]
)
def test_what_cannot_be_counted_is_absent_and_a_failure(entities, failures, source):
    entities.count("food_sources", Source.of(source))
    assert read(entities).by("trainer_entities", "type") == {}
    assert failures.counts["entities"] == 1


def events(collector):
    found = read(collector)
    return (
        found.by("trainer_event_list_items", "list"),
        found.by("trainer_event_list_capacity_items", "list"),
    )


@pytest.mark.parametrize(
    ("first", "then", "declared", "items", "capacity"),
    [
        (deque(maxlen=5), deque(range(10), maxlen=5), None, 5, {"death": 5}),
        ([], [1, 2], None, 2, {}),
        (deque([1], maxlen=5), list(range(50)), None, 50, {"death": 5}),
        (deque([1], maxlen=5), deque([1], maxlen=9), None, 1, {"death": 9}),
        (deque([1], maxlen=5), deque([1], maxlen=5), 100, 1, {"death": 100}),
    ],
    ids=["bounded", "unbounded", "became a list", "another bound", "a declared bound"],
)
def test_the_bound_of_an_event_list(failures, first, then, declared, items, capacity):
    kept = [first]
    collector = EventCollector(failures, 1.0)
    collector.count("death", Source.of(lambda: kept[0]), declared)
    events(collector)
    kept[0] = then
    assert events(collector) == ({"death": items}, capacity)


@pytest.fixture
def sizes(failures):
    return SizeCollector(failures, interval=5.0)


def test_deep_sizes_by_name(sizes, tmp_path):
    policy = torch.nn.Linear(100, 100)
    sizes.measure("policy.state_dict", Source.of(policy.state_dict))
    sizes.measure("stats", held({"returns": np.zeros(1000)}))
    sizes.measure("mapped", held(np.memmap(tmp_path / "array", dtype=np.uint8, mode="w+", shape=5000)))
    sizes.measure("lengths", held([bytes(at % 1000) for at in range(10_000)]))
    found = read(sizes)
    nbytes = found.by("trainer_object_size_bytes", "object")
    errors = found.by("trainer_object_size_error_bytes", "object")

    assert nbytes["policy.state_dict"] == pytest.approx(40_400, abs=2000)
    assert nbytes["stats"] == pytest.approx(8000, abs=500)
    assert found.value("trainer_object_size_offheap_bytes", object="mapped", place="mapped") == 5000
    assert errors["lengths"] > 0
    assert errors["stats"] == 0


class Agent:
    pass


class Environment:
    pass


def test_counts_of_the_last_census_are_those_of_classes_alone():
    collector = ObjectCollector(interval=5.0)
    with pytest.raises(ValueError, match="objects takes classes, got 'Agent'"):
        collector.count(Environment, "Agent")
    assert collector.samplers == []
    collector.count(Agent, Environment)
    uncounted = ObjectCollector(interval=5.0)
    uncounted.count(Agent)
    assert Readings(uncounted.collect()).by("trainer_objects", "type") == {}
    agents = [Agent() for _ in range(4)]
    for sampler in collector.samplers:
        sampler.sample()
    agents.clear()
    assert Readings(collector.collect()).by("trainer_objects", "type") == {"Agent": 4, "Environment": 0}
