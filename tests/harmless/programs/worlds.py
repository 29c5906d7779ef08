"""A Box2D world whose bodies come and go in its steps, declared and not."""

import itertools
import weakref

import Box2D


class Robot:
    """The owner of a body."""

    def __init__(self, world, count):
        self.body = world.CreateDynamicBody(position=(count % 50, 10))
        self.body.CreatePolygonFixture(box=(1, 1), density=1)
        self.wheel = world.CreateDynamicBody(position=(count % 50, 12))
        self.joint = world.CreateRevoluteJoint(bodyA=self.body, bodyB=self.wheel, anchor=(0, 0))


def worlds(held, dropped, watch):
    world = Box2D.b2World(gravity=(0, -10))
    watch.bodies(world)
    held["world"] = world
    held["robots"] = []
    for count in itertools.count(1):
        robot = Robot(world, count)
        held["robots"].append(robot)
        world.Step(1 / 60, 6, 2)
        if len(held["robots"]) > 30:
            oldest = held["robots"].pop(0)
            world.DestroyBody(oldest.wheel)
            world.DestroyBody(oldest.body)
            dropped.append(weakref.ref(oldest))
            oldest = None
        robot = None
        watch.step()
        yield
