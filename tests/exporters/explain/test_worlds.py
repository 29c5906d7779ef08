"""Worlds that nobody declared: what the walk finds, and how many bodies they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heapwatch import Watch
from heapwatch.explain.worlds import Worlds
from heapwatch.runtime.sources import NoValue
from tests.support.walking import inventory_of, walk

Box2D = pytest.importorskip("Box2D")


class Environment:
    def __init__(self) -> None:
        self.world = Box2D.b2World()

    def spawn(self, bodies: int) -> None:
        for _ in range(bodies):
            self.world.CreateDynamicBody()


class Found:
    """The counts by name, and a clock."""

    def __init__(self, held: dict[str, Any]) -> None:
        self.counts: dict[str, Callable[[], float]] = {}
        self.now = 0.0
        self.inventory = inventory_of(held)
        self.worlds = Worlds(
            self.inventory.worlds, lambda read: read(), self.counts.__setitem__, lambda: self.now
        )

    def look(self) -> None:
        walk(self.inventory)
        self.worlds.count()

    def only(self) -> Callable[[], float]:
        (count,) = self.counts.values()
        return count


def test_bodies_of_a_world_are_counted_under_its_path():
    environment = Environment()
    found = Found({"env": environment})
    environment.spawn(3)
    found.look()
    assert [name.endswith(".world.bodies") for name in found.counts] == [True]
    assert found.only()() == 3
    environment.spawn(4)
    found.worlds.count()
    assert found.only()() == 7


def test_a_world_with_two_paths_is_one():
    environment = Environment()
    held = {"trainer": {}, "env": environment}
    found = Found(held)
    found.look()
    held["trainer"]["world"] = environment.world  # where the next walk comes first
    found.look()
    found.look()
    assert len(found.inventory.worlds) == 2
    assert len(found.counts) == 1


def test_worlds_at_one_path_are_counted_together():
    environments = [Environment(), Environment()]
    found = Found({"envs": environments})
    environments[0].spawn(1)
    environments[1].spawn(3)
    found.look()
    found.look()
    assert [name.endswith("[*].world.bodies") for name in found.counts] == [True]
    assert found.only()() == 4


def test_a_world_in_its_step_is_not_touched(monkeypatch):
    monkeypatch.setattr(Box2D.b2World, "locked", True)
    environment = Environment()
    found = Found({"env": environment})
    found.look()
    assert not found.counts


def test_an_old_count_is_no_count():
    held = {"env": Environment()}
    found = Found(held)
    found.look()
    count = found.only()
    held.clear()
    found.now = 61.0
    found.worlds.count()
    with pytest.raises(NoValue):
        count()


def test_a_world_is_an_entity_unless_the_trainer_declares_its_bodies():
    watch = Watch("worlds")
    watch.exporter._count_world("env.world.bodies", lambda: 3.0)
    watch.exporter.entities.sample()
    (metric,) = watch.exporter.entities.collect()
    (sample,) = metric.samples
    assert (sample.labels, sample.value) == ({"type": "env.world.bodies"}, 3.0)

    declared = Watch("bodies")
    declared.bodies(Box2D.b2World())
    declared.exporter._count_world("env.world.bodies", lambda: 3.0)
    declared.exporter.entities.sample()
    assert not any(metric.samples for metric in declared.exporter.entities.collect())
