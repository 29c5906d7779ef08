import gc

import Box2D
import pytest

from heapwatch.collectors.bodies import BodyCollector
from heapwatch.runtime.sources import Source, SourceGone
from tests.exporters.exposed import values


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


def collector(failures, clock, source, classify=None, owners=None):
    owned = None if owners is None else Source.of(owners)
    return BodyCollector(Source.of(source), classify, owned, failures, 1.0, clock)


def counts(bodies):
    bodies.sample()
    return {
        kind: count for kind, count in values(bodies.collect(), "trainer_bodies", "type").items() if count
    }


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        (lambda physics: {}, {"static": 1, "dynamic": 19}),
        (
            lambda physics: {"owners": lambda: {"terrain": [physics.ground], "agent": physics.robots[0]}},
            {"terrain": 1, "agent": 6, "unknown": 13},
        ),
        (
            lambda physics: {
                "classify": lambda body: "terrain" if body == physics.ground else None,
                "owners": lambda: physics.robots,
            },
            {"terrain": 1, "agent": 3, "dynamic": 15, "unknown": 1},
        ),
    ],
    ids=["the physics type", "owners by type", "classify may leave it"],
)
def test_what_decides_the_type(failures, clock, physics, options, counted):
    physics.world.CreateKinematicBody()
    assert counts(collector(failures, clock, physics.world, **options(physics))) == counted


def test_owners_distinguish_agents_parts_and_orphans(failures, clock, physics):
    bodies = collector(failures, clock, physics.world, owners=lambda: physics.robots)
    assert counts(bodies) == {"static": 1, "agent": 3, "dynamic": 15}
    physics.kill(0)
    assert counts(bodies) == {"static": 1, "agent": 2, "dynamic": 10, "unknown": 5}


def test_all_five_types_are_always_reported(failures, clock, physics):
    bodies = collector(failures, clock, physics.world)
    bodies.sample()
    found = values(bodies.collect(), "trainer_bodies", "type")
    assert found.keys() == {"static", "dynamic", "terrain", "agent", "unknown"}
    assert found["terrain"] == 0


def test_each_body_is_counted_once_though_two_own_it(failures, clock, physics):
    bodies = collector(failures, clock, physics.world, owners=lambda: physics.robots * 2)
    assert sum(counts(bodies).values()) == physics.world.bodyCount


def test_several_worlds_add_up(failures, clock, physics):
    other = Physics(robots=1)
    bodies = collector(failures, clock, lambda: [physics.world, other.world])
    assert counts(bodies) == {"static": 2, "dynamic": 24}


def test_counts_may_be_given(failures, clock):
    bodies = collector(failures, clock, lambda: {"static": 1, "wheel": 4})
    assert counts(bodies) == {"static": 1, "wheel": 4}


@pytest.mark.parametrize("wrong", [{"static": -1}, {"static": "one"}, {3: 1}, None, 7])
def test_counts_that_are_no_counts_are_an_error(failures, clock, wrong):
    with pytest.raises((TypeError, ValueError)):
        collector(failures, clock, lambda: wrong).sample()


def test_a_classify_function_with_endless_types_is_bounded(failures, clock):
    physics = Physics(robots=20)
    bodies = collector(failures, clock, physics.world, classify=lambda body: f"body {hash(body)}")
    found = counts(bodies)
    assert len(found) <= 17
    assert sum(found.values()) == physics.world.bodyCount
    assert failures.left_out["bodies"] > 0


def test_an_unchanged_count_is_not_walked_again_at_once(failures, clock, physics):
    walks = []
    bodies = collector(failures, clock, physics.world, classify=lambda body: walks.append(body.type))
    bodies.sample()
    walked = len(walks)
    clock.now += 1
    bodies.sample()
    assert len(walks) == walked
    physics.world.CreateDynamicBody()
    bodies.sample()
    assert len(walks) > walked
    walked = len(walks)
    clock.now += 6
    bodies.sample()
    assert len(walks) > walked


def test_no_body_is_kept(failures, clock, physics):
    bodies = collector(failures, clock, physics.world, owners=lambda: physics.robots)
    bodies.sample()
    gc.collect()
    holders = gc.get_referrers(physics.robots[0][0])
    assert holders == [physics.robots[0]]


def test_a_destroyed_world_ends_the_series(failures, clock):
    physics = Physics()
    bodies = collector(failures, clock, physics.world)
    bodies.sample()
    del physics
    gc.collect()
    with pytest.raises(SourceGone):
        bodies.sample()


def locked_in_a_step(bodies, physics):
    """What `bodies` says from within a step, once for each contact of two bodies that are made to touch."""
    seen = []

    class Listener(Box2D.b2ContactListener):
        def BeginContact(self, contact):
            seen.append(bodies.locked())

    physics.world.contactListener = Listener()
    for body in (physics.ground, physics.robots[0][0]):
        body.CreateFixture(shape=Box2D.b2PolygonShape(box=(1, 1)))
    physics.world.Step(1 / 60, 8, 3)
    return seen


def test_inside_a_step_the_world_is_locked(failures, clock, physics):
    bodies = collector(failures, clock, physics.world)
    assert locked_in_a_step(bodies, physics) == [True]
    assert not bodies.locked()


def test_the_lock_of_every_world_counts(failures, clock, physics):
    class Gone:
        bodyCount = 0

        @property
        def locked(self):
            raise RuntimeError("the world was destroyed")

    other = Physics(robots=1)
    bodies = collector(failures, clock, lambda: [Gone(), other.world, physics.world])
    assert locked_in_a_step(bodies, physics) == [True]
    assert not bodies.locked()


def test_the_total_is_read_without_a_walk(failures, clock, physics):
    walks = []
    bodies = collector(failures, clock, physics.world, classify=lambda body: walks.append(body.type))
    bodies.total.sample()
    assert values(bodies.total.collect(), "trainer_world_bodies", "") == {"": 19}
    assert not walks


def test_a_trainer_that_counts_its_bodies_itself_is_not_asked_twice(failures, clock):
    asked = []

    def count():
        asked.append(1)
        return {"dynamic": 3}

    total = collector(failures, clock, count).total
    total.sample()
    total.sample()
    assert len(asked) == 1
    assert values(total.collect(), "trainer_world_bodies", "") == {}
