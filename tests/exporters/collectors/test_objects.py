import pytest

from heapwatch.analysis.readings import Readings
from heapwatch.collectors.objects import ObjectCollector


class Agent:
    pass


class Environment:
    pass


def test_counts_of_the_last_census():
    collector = ObjectCollector(interval=5.0)
    collector.count(Agent, Environment)
    assert Readings(collector.collect()).by("trainer_objects", "type") == {}
    agents = [Agent() for _ in range(4)]
    collector.sample()
    agents.clear()

    assert Readings(collector.collect()).by("trainer_objects", "type") == {"Agent": 4, "Environment": 0}


def test_only_classes_are_counted():
    collector = ObjectCollector(interval=5.0)
    with pytest.raises(ValueError, match="objects takes classes, got 'Agent'"):
        collector.count(Environment, "Agent")
    collector.sample()

    assert Readings(collector.collect()).by("trainer_objects", "type") == {}
