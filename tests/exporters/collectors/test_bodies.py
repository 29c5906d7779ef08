import gc
from functools import partial

import Box2D
import pytest

from heapwatch.collectors.bodies import BodyCollector
from heapwatch.runtime.sources import Source, SourceGone
from tests.support.exposed import values


class Physics:
    """A world with a ground and robots: a chassis and its limbs."""

    def __init__(self, robots=3, limbs=5):
        self.world = Box2D.b2World()
        self.ground = self.world.CreateStaticBody()
        self.robots = [[self.world.CreateDynamicBody() for _ in range(limbs + 1)] for _ in range(robots)]

    def kill(self, robot):
        """As the documents' trainer did: the chassis is destroyed, the limbs are forgotten."""
        chassis, *_ = self.robots.pop(robot)
        self.world.DestroyBody(chassis)


@pytest.fixture
def physics():
    return Physics()


@pytest.fixture
def collector(failures):
    """A collector of the bodies of a world, or of what a function returns."""

    def make(source, classify=None, owners=None):
        owned = None if owners is None else Source.of(owners)
        return BodyCollector(Source.of(source), classify, owned, failures, 1.0)

    return make


def counts(bodies):
    bodies.sample()
    return {
        kind: count for kind, count in values(bodies.collect(), "trainer_bodies", "type").items() if count
    }


def both(physics):
    return physics.world, Physics(robots=1).world


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        (lambda physics: (physics.world,), {"static": 1, "dynamic": 19}),
        (
            lambda physics: (
                physics.world, None, lambda: {"terrain": [physics.ground], "agent": physics.robots[0]},
            ),
            {"terrain": 1, "agent": 6, "unknown": 13},
        ),
        (
            lambda physics: (
                physics.world,
                lambda body: "terrain" if body == physics.ground else None,
                lambda: physics.robots,
            ),
            {"terrain": 1, "agent": 3, "dynamic": 15, "unknown": 1},
        ),
        (
            lambda physics: (physics.world, None, lambda: physics.robots * 2),
            {"static": 1, "agent": 3, "dynamic": 15, "unknown": 1},
        ),
        (
            lambda physics: (partial(both, physics),),
            {"static": 2, "dynamic": 25},
        ),
        (lambda physics: (lambda: {"static": 1, "wheel": 4},), {"static": 1, "wheel": 4}),
    ],
    ids=[
        "the physics type", "owners by type", "classify may leave it", "two own each", "several worlds",
        "counts are given",
    ],
)  # fmt: skip
def test_what_decides_the_type(collector, physics, options, counted):
    physics.world.CreateKinematicBody()
    assert counts(collector(*options(physics))) == counted


def test_owners_distinguish_agents_parts_and_orphans(collector, physics):
    bodies = collector(physics.world, owners=lambda: physics.robots)
    assert counts(bodies) == {"static": 1, "agent": 3, "dynamic": 15}
    physics.kill(0)
    assert counts(bodies) == {"static": 1, "agent": 2, "dynamic": 10, "unknown": 5}


@pytest.mark.parametrize("wrong", [{"static": -1}, {3: 1}, None])
def test_counts_that_are_no_counts_are_an_error(collector, wrong):
    with pytest.raises((TypeError, ValueError)):
        collector(lambda: wrong).sample()


def test_no_body_is_kept(collector, physics):
    bodies = collector(physics.world, owners=lambda: physics.robots)
    bodies.sample()
    gc.collect()
    holders = gc.get_referrers(physics.robots[0][0])
    assert holders == [physics.robots[0]]


def test_a_destroyed_world_ends_the_series(collector):
    physics = Physics()
    bodies = collector(physics.world)
    bodies.sample()
    del physics
    gc.collect()
    with pytest.raises(SourceGone):
        bodies.sample()


class Gone:
    bodyCount = 0

    @property
    def locked(self):
        raise RuntimeError("the world was destroyed")


@pytest.mark.parametrize("others", [0, 2], ids=["one world", "the last of several"])
def test_inside_a_step_of_any_world_it_is_locked(collector, physics, others):
    """What is said from within a step, once for each contact of two bodies that are made to touch."""
    seen = []

    class Listener(Box2D.b2ContactListener):
        def BeginContact(self, contact):
            seen.append(bodies.locked())

    several = [Gone(), Physics(robots=1).world, physics.world]
    bodies = collector((lambda: several) if others else physics.world)
    physics.world.contactListener = Listener()
    for body in (physics.ground, physics.robots[0][0]):
        body.CreateFixture(shape=Box2D.b2PolygonShape(box=(1, 1)))
    physics.world.Step(1 / 60, 8, 3)
    assert seen == [True]
    assert not bodies.locked()
